"""All randomness that privacy rests on: sampling, clipping, selection, noise, and the events that account for them."""

from __future__ import annotations

from fedkge.mechanisms.adafest import Adafest
from fedkge.mechanisms.clipping import Clip, PerTriple
from fedkge.mechanisms.dense import Dense
from fedkge.mechanisms.dense_published import DensePublished
from fedkge.mechanisms.fest import Fest
from fedkge.mechanisms.lazy import LazyNoise
from fedkge.mechanisms.negatives import PublicNegatives
from fedkge.mechanisms.noise import NoiseSource
from fedkge.mechanisms.plan import StepPlan
from fedkge.mechanisms.ptr import Ptr
from fedkge.mechanisms.ptr_published import PtrPublished
from fedkge.mechanisms.sampling import PoissonSampling
from fedkge.mechanisms.schedule import ByValidation, Constant, GeometricDecay, Schedule, ScheduleSettings
from fedkge.mechanisms.selection import Selected, Selection, SelectionSettings, Touched

SELECTIONS: dict[str, type[Selection]] = {
    selection.name: selection for selection in (Dense, Adafest, Fest, Ptr, PtrPublished, DensePublished)
}
"""Every selection by the name of its option value; each builds itself from `SelectionSettings`."""

SCHEDULES: dict[str, type[Schedule]] = {
    schedule.name: schedule for schedule in (Constant, GeometricDecay, ByValidation)
}
"""Every noise schedule by the name of its option value; each builds itself from `ScheduleSettings`."""

__all__ = [
    "SCHEDULES",
    "SELECTIONS",
    "Adafest",
    "ByValidation",
    "Clip",
    "Constant",
    "Dense",
    "DensePublished",
    "Fest",
    "GeometricDecay",
    "LazyNoise",
    "NoiseSource",
    "PerTriple",
    "PoissonSampling",
    "Ptr",
    "PtrPublished",
    "PublicNegatives",
    "Schedule",
    "ScheduleSettings",
    "Selected",
    "Selection",
    "SelectionSettings",
    "StepPlan",
    "Touched",
]
