"""Every option of a training run, in six sections.

An option is written down once: its section's module has its name, default, limits, meaning, and who may set it.
"""

from fedkge.configuration.configuration import Configuration, sections_as_toml
from fedkge.configuration.data import DataSection
from fedkge.configuration.experiment import ExperimentSection
from fedkge.configuration.federation import FederationSection
from fedkge.configuration.model import ModelSection
from fedkge.configuration.options import OPTIONS, SECTIONS, Kind, Option, decided_by, known_options, marked
from fedkge.configuration.privacy import PrivacySection
from fedkge.configuration.reading import flat_options, read_table, read_toml
from fedkge.configuration.section import BY_SITE, Mark, Section, Who, kebab
from fedkge.configuration.training import TrainingSection

__all__ = [
    "BY_SITE",
    "OPTIONS",
    "SECTIONS",
    "Configuration",
    "DataSection",
    "ExperimentSection",
    "FederationSection",
    "Kind",
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
    "known_options",
    "marked",
    "read_table",
    "read_toml",
    "sections_as_toml",
]
