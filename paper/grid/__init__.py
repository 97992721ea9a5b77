"""A grid that goes on where it stopped: tasks that measure cells, stores that keep them, processes that share the work.

The paper's reproduction and the benchmarks of utility use it alike.
"""

from paper.grid.schedule import Grid, Task, Tell
from paper.grid.store import Files, Lines, Store, digest_of
from paper.grid.view import watch_grid

__all__ = ["Files", "Grid", "Lines", "Store", "Task", "Tell", "digest_of", "watch_grid"]
