"""kvspecs: what is true of every sound engine. One module a property, below `safety` and `liveness`."""

from kvspecs.catalogue import LIVENESS, NAMES, SAFETY, sentence_of
from kvspecs.property import LivenessProperty, Property

__all__ = ["LIVENESS", "NAMES", "SAFETY", "LivenessProperty", "Property", "sentence_of"]
