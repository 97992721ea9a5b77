"""Every option of a training run, and the presets of the defences."""

from fedkge.configuration.configuration import CHANGEABLE, Configuration, kebab, parse, read_table, read_toml, restore

__all__ = ["CHANGEABLE", "Configuration", "kebab", "parse", "read_table", "read_toml", "restore"]
