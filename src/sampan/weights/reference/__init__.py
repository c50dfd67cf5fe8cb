"""An independent reference in numpy: it knows the formulas of the models and nothing of the engine under test."""
