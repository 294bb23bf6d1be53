"""recordings.json: which recordings a run or an evaluation was begun with, to notice on resuming that they changed."""

from __future__ import annotations

import attrs

from clocs_core.artifacts.documents import SCHEMA


@attrs.frozen(kw_only=True)
class UsedRecordings:
    """The recordings of a run or an evaluation, as counts and hashes.

    split: hash of the part of each patient. labels: hash of the patient and the label of each recording.
    files: fingerprints of the prepared frames, which change with the name, size and time of a file, the options of the
    data set and the framing. frames: hash of the prepared frames themselves.
    """

    schema: int = SCHEMA
    recordings: int
    patients: int
    split: str
    labels: str
    files: tuple[str, ...]
    frames: str

    def difference(self, now: UsedRecordings) -> str:
        """Say what differs between these recordings and those of `now`; "" where they are the same.

        Files that were copied or touched, and are read as the same frames, are the same recordings.
        """
        if (self.recordings, self.patients) != (now.recordings, now.patients):
            return f"it had {self._counts()}, now there are {now._counts()}"
        if self.split != now.split:
            return "other patients are in its parts"
        if self.labels != now.labels:
            return "patients or labels of some recordings are others"
        if self.files != now.files and self.frames != now.frames:
            return (
                "files were replaced, or are read in another way: "
                f"their fingerprint was {', '.join(self.files)} and is {', '.join(now.files)}"
            )
        return ""

    def _counts(self) -> str:
        return f"{self.recordings:,} recordings of {self.patients:,} patients"
