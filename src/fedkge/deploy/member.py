"""A site in a federation: it checks the server's requests against site.toml and passes allowed ones to its Client."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

import numpy as np

from fedkge import __version__
from fedkge.base.errors import FedkgeError, NumericalError, PolicyError, PrivacyError, RunError
from fedkge.base.text import printable
from fedkge.deploy.admission import Admission, Prepared, prepare
from fedkge.deploy.alignment import PSEUDONYM_BYTES, Witness, confirmed, ownership_tags
from fedkge.deploy.joint_alignment_rounds import JointAlignment, pseudonyms_of
from fedkge.deploy.ledger_ends import check_remembered
from fedkge.deploy.logs import log_of
from fedkge.deploy.site_run_files import write_model_of_site, write_round
from fedkge.deploy.site_settings import SiteSettings
from fedkge.deploy.status import FINISHED, HAS_MODEL, Status
from fedkge.deploy.wire import LARGEST_MESSAGE, Numbers, WireError, as_request, decode, encode
from fedkge.federation.client import Client
from fedkge.federation.messages import (
    Accept,
    Align,
    Aligned,
    Evaluate,
    Failure,
    Finish,
    Fit,
    Goodbye,
    Greeting,
    Hello,
    Invite,
    Kept,
    Reply,
    Request,
    Share,
    Upload,
)
from fedkge.runs.directory import RunDirectory
from fedkge.store.durable_files import make_folder

LOG = log_of("fedkge.site")
LOCK_SECONDS = 120.0


@dataclass(frozen=True, slots=True, eq=False)
class _Joined:
    """The state of a site that has accepted an invitation."""

    admission: Admission
    client: Client


class Member:
    """Answers a server's requests, as far as site.toml allows. Use it with `with`: it keeps its run directory locked.

    The first request must be an invitation, and the site checks its terms. The site shares a row only after proof that
    enough other sites own it. It trains no more rounds than agreed, and sends the loss only if site.toml allows it.
    """

    def __init__(self, settings: SiteSettings) -> None:
        self.name = settings.name
        self._settings = settings
        self._directory = RunDirectory(settings.run)
        self._status = Status(settings.run)
        self._stack = ExitStack()
        self._locked = False
        self._invite: Invite | None = None
        self._prepared: Prepared | None = None
        self._alignment: JointAlignment | None = None
        self._joined: _Joined | None = None
        self._numbers: Numbers = "float32"
        self._sharing = settings.least_owners == 1
        self._finished: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def answer(self, content: bytes) -> bytes:
        """The encoded answer to an encoded request; an error becomes an answer too."""
        try:
            return encode(self.handle(as_request(decode(content, LARGEST_MESSAGE))), self._numbers)
        except FedkgeError as error:
            LOG.error("%s", error)
            self._note(str(error))
            failure = Failure(self.name, outward(error), isinstance(error, NumericalError))
        except Exception:
            LOG.exception("internal error in fedkge; the server learns only that there was one")
            self._note("internal error in fedkge; nvflare.log has the traceback")
            failure = Failure(self.name, "internal error in its fedkge; the site's own log says more")
        return encode(failure)

    def _note(self, line: str) -> None:
        """Write a note for the people at the site. If that fails, the server still gets its answer."""
        try:
            self._status.note(line)
        except (FedkgeError, OSError) as error:
            LOG.error("the note cannot be written: %s", error)

    def handle(self, request: Request) -> Reply:  # noqa: PLR0911 (one per kind of request)
        """Answer one request of the server."""
        if isinstance(request, Invite):
            return self._join(request)
        if isinstance(request, Align):
            return self._align(request)
        if self._joined is None:
            raise WireError(f"{self.name} was asked for {type(request).__name__} before it was invited")
        if isinstance(request, Hello):
            return self._greet(self._joined)
        if isinstance(request, Share):
            return self._share(request, self._joined)
        if isinstance(request, Fit):
            return self._fit(request, self._joined)
        if isinstance(request, Evaluate):
            return self._evaluate(request, self._joined)
        return self._finish(request, self._joined)

    def _join(self, invite: Invite) -> Accept:
        if invite.version != __version__:
            raise WireError(
                f"{self.name} runs fedkge {__version__}, the server {invite.version}; install one version everywhere"
            )
        if self._invite is None:
            self._lock()
            prepared = prepare(invite, self._settings, self._directory)
            self._numbers = "float16" if invite.numbers == "float16" else "float32"
            self._complete(prepared)
            self._prepared, self._invite = prepared, invite
        elif replace(invite, mark=self._invite.mark, releases=self._invite.releases) != self._invite:
            raise PolicyError(f"{self.name} has accepted other terms; terms cannot change while a federation runs")
        assert self._prepared is not None  # noqa: S101 (set together with the invitation)
        accepted = Accept(__version__, self._prepared.fingerprint, self._joined is not None)
        if ledger := self._prepared.ledger:
            check_remembered(ledger, invite)
            return replace(accepted, mark=ledger.mark, releases=ledger.releases)
        return accepted

    def _complete(self, prepared: Prepared) -> None:
        """Join, as soon as all names have pseudonyms."""
        pseudonymise = pseudonyms_of(self._settings, prepared.key)
        if pseudonymise is None:
            return
        admission = prepared.complete(pseudonymise, self._directory)
        self._joined = _Joined(admission, admission.make_client(self.name, self._directory))
        if admission.ledger and admission.ledger.notice:
            self._status.note(admission.ledger.notice)
        self._say("joined", self._joined, self._joined.client.round)

    def _align(self, request: Align) -> Aligned:
        if self._prepared is None or self._settings.alignment != "joint":
            raise PolicyError(
                f"{self.name} refuses a joint alignment: it was not invited, or its site.toml says another alignment"
            )
        if self._alignment is None:
            self._alignment = JointAlignment(
                self._settings, self._prepared.key, self._prepared.canonical.graph.entities.names
            )
            self._status.note(f"joint alignment among {', '.join(request.sites)!s:.500}: do you know them all?")
        reply = self._alignment.handle(request)
        if reply.check and self._joined is None:
            self._complete(self._prepared)
        return reply

    def _lock(self) -> None:
        """Wait for the lock: a process of an earlier job may still be ending. A refused invitation keeps the lock."""
        if self._locked:
            return
        make_folder(self._directory.path)
        ends = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                self._stack.enter_context(self._directory.locked())
                self._locked = True
                return
            except RunError:
                if time.monotonic() > ends:
                    raise
                time.sleep(0.5)

    def _greet(self, joined: _Joined) -> Greeting:
        greeting = joined.client.handle(Hello())
        if not isinstance(greeting, Greeting):
            raise RunError(f"{self.name}: expected a greeting from its own client, got {type(greeting).__name__}")
        key, names = joined.admission.key, greeting.names["entities"]
        tags = ownership_tags(key, self._settings.federation, self.name, names)
        return replace(greeting, tags={"entities": np.frombuffer(tags, np.uint8).reshape(-1, PSEUDONYM_BYTES)})

    def _share(self, request: Share, joined: _Joined) -> Reply:
        """Agree to share rows if other sites have proved that they own them too."""
        names = joined.client.shard.entities.names
        witnesses = {other: Witness(word.places, word.tags.tobytes()) for other, word in request.evidence.items()}
        try:
            mask = confirmed(
                joined.admission.key,
                self._settings.federation,
                self.name,
                names,
                witnesses,
                self._settings.least_owners,
            )
        except PrivacyError as error:
            raise PolicyError(str(error)) from error
        asked = request.places.get("entities", np.zeros(0, np.int64))
        if len(asked) and (asked.min() < 0 or asked.max() >= len(mask) or not mask[asked].all()):
            raise PolicyError(
                f"{self.name}: the server asks for rows that fewer than {self._settings.least_owners} sites own; "
                "set minimum-owners in federation.toml to the largest least-owners of any site"
            )
        reply = joined.client.handle(request)
        self._sharing = True
        return reply

    def _fit(self, request: Fit, joined: _Joined) -> Reply:
        rounds = joined.admission.configuration.training.rounds
        if not self._sharing:
            raise PolicyError(f"{self.name}: it trains nothing until the server has shown which sites own which rows")
        if request.round > rounds:
            raise PolicyError(f"{self.name} agreed to {rounds} rounds and was asked for round {request.round}")
        self._say("training", joined, request.round)
        began = time.perf_counter()
        reply = joined.client.handle(request)
        LOG.info("round %d took %.3f seconds here", request.round, time.perf_counter() - began)
        if isinstance(reply, Upload):
            write_round(self._directory, self.name, joined.client, request, reply, joined.admission.recorded)
            if not self._settings.limits.tell_loss:
                reply = replace(reply, loss=None)
            if ledger := joined.admission.ledger:
                reply = replace(reply, mark=ledger.mark, releases=ledger.releases)
        self._say("out of budget" if isinstance(reply, Goodbye) else "uploaded", joined, request.round)
        return reply

    def _evaluate(self, request: Evaluate, joined: _Joined) -> Reply:
        if not self._settings.limits.answer_evaluations:
            raise PolicyError(f"{self.name} answers no evaluations (answer-evaluations under [limits] in site.toml)")
        return joined.client.handle(request)

    def _finish(self, request: Finish, joined: _Joined) -> Kept:
        write_model_of_site(self._directory, joined.admission, joined.client, request)
        self._finished = request.round
        self._say(HAS_MODEL, joined, request.round)
        return Kept(request.round)

    def answered(self) -> None:
        """The server has received the last answer. If that answer confirmed the final model, this site is done."""
        if self._joined is None or self._finished is None:
            return
        try:
            self._say(FINISHED, self._joined, self._finished)
        except (FedkgeError, OSError) as error:  # the model is on disk, which matters more
            LOG.error("the final status cannot be written: %s", error)

    def _say(self, state: str, joined: _Joined, round_number: int) -> None:
        budget: Mapping[str, Any] = joined.admission.budget(self.name)
        self._status.write(
            state=state, round=round_number, rounds=joined.admission.configuration.training.rounds, **budget
        )


def outward(error: FedkgeError) -> str:
    """The part of an error that the server may read. Other errors may name entities and paths, which stay at the site.

    >>> outward(RunError("patients.tsv: no such file"))
    "RunError; the site's own log says more"
    """
    if isinstance(error, (WireError, PolicyError)):
        return printable(str(error))
    return f"{type(error).__name__}; the site's own log says more"
