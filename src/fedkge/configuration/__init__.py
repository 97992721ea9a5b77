"""Every option of a training run, in six sections, and the presets of the defences.

An option is written down once: its section's module has its name, default, limits, meaning, and who may set it.
"""

from fedkge.configuration.configuration import Configuration, sections_as_toml
from fedkge.configuration.data import DataSection
from fedkge.configuration.experiment import ExperimentSection
from fedkge.configuration.federation import FederationSection
from fedkge.configuration.model import ModelSection
from fedkge.configuration.options import CHANGEABLE, OPTIONS, SECTIONS, Option, decided_by, marked
from fedkge.configuration.privacy import PrivacySection
from fedkge.configuration.reading import flat_options, parse, read_table, read_toml
from fedkge.configuration.section import Mark, Section, Who, kebab
from fedkge.configuration.training import TrainingSection

__all__ = [
    "CHANGEABLE",
    "OPTIONS",
    "SECTIONS",
    "Configuration",
    "DataSection",
    "ExperimentSection",
    "FederationSection",
    "Mark",
    "ModelSection",
    "Option",
    "PrivacySection",
    "Section",
    "TrainingSection",
    "Who",
    "decided_by",
    "flat_options",
    "kebab",
    "marked",
    "parse",
    "read_table",
    "read_toml",
    "sections_as_toml",
]
