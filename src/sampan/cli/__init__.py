"""The command line: parse, call the flow, print. One module per verb, each thin."""
