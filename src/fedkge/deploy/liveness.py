"""When the server counts a site as lost. All times follow from one setting, `silence-seconds` in federation.toml.

Two clocks watch a site. The server's job asks the site's job process every few seconds; NVFlare's server listens for
the heartbeats of the site's main process. NVFlare must give a site up first. Otherwise a dead site would still be on
its list when the job leaves it out, and would look as if it had come back.
"""

from __future__ import annotations

from dataclasses import dataclass

HEARTBEAT_SECONDS = 5.0
"""Seconds between the heartbeats of a site's NVFlare (NVFlare's own default is 10)."""

CLEAN_SECONDS = 5.0
"""Seconds between NVFlare's checks for sites whose heartbeat has stopped; it cannot be changed."""

SHORTEST_SILENCE = 20.0
SLOWEST_BYTES_PER_SECOND = 1e6
DELIVERY_SECONDS, SLOWEST_DELIVERY = 10.0, 1e5


@dataclass(frozen=True, slots=True)
class Liveness:
    """A site that is silent for `silence_seconds` is lost, even long before the time limit of the round.

    Do not set it too short: on a slow line, a small question waits behind hundreds of megabytes.

    >>> Liveness(120.0).heartbeat_timeout, Liveness(120.0).ping_seconds, Liveness(120.0).start_seconds
    (60.0, 5.0, 60.0)
    >>> Liveness(SHORTEST_SILENCE).heartbeat_timeout + CLEAN_SECONDS <= SHORTEST_SILENCE
    True
    """

    silence_seconds: float = 120.0

    @property
    def heartbeat_timeout(self) -> float:
        """NVFlare removes a site without a heartbeat from its list after this time, before the job gives it up."""
        return max(3 * HEARTBEAT_SECONDS, self.silence_seconds / 2)

    @property
    def ping_seconds(self) -> float:
        """Seconds between the job's pings to a site."""
        return min(5.0, self.silence_seconds / 4)

    @property
    def start_seconds(self) -> float:
        """Additional seconds at the beginning of a job, while job processes start."""
        return self.silence_seconds / 2

    def allowed(self, undelivered_bytes: int) -> float:
        """Seconds that a site may be silent while this many bytes are on their way to it.

        >>> Liveness(20.0).allowed(0), Liveness(20.0).allowed(100_000_000)
        (20.0, 120.0)
        """
        return self.silence_seconds + undelivered_bytes / SLOWEST_BYTES_PER_SECOND


def delivery_seconds(size: int) -> float:
    """Seconds to wait for the receipt of a message of this size before it is sent again.

    >>> delivery_seconds(0), delivery_seconds(10_000_000)
    (10.0, 110.0)
    """
    return DELIVERY_SECONDS + size / SLOWEST_DELIVERY
