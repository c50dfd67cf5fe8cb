"""The engine's executables and the launcher, compiled for the target by ``zig``."""
