"""The only code that starts processes, opens connections and owns the cache."""
