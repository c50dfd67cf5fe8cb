"""What is that machine? Known names, this machine, a pasted block, the script that prints it, the probe."""
