"""Build dist/ from HEAD, reproducibly, and use the wheel in an empty environment without a network: `make dist`."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import subprocess
import sys
import tarfile
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parent.parent
_WITHOUT_NETWORK = ("unshare", "--map-root-user", "--net")
_DEMO_QUERY, _DEMO_ANSWER = "protect plumbing from freezing", "services/automation"


def main() -> None:
    """Build twice, compare the bytes, check the metadata, and search a wiki with what a wheelhouse installs."""
    os.umask(0o022)
    epoch = _output("git", "log", "-1", "--format=%ct")
    dist = ROOT / "dist"
    with TemporaryDirectory() as scratch:
        first, second = (_built(Path(scratch, name), epoch) for name in ("first", "second"))
        for file in first:
            if file.read_bytes() != next(each for each in second if each.name == file.name).read_bytes():
                sys.exit(f"{file.name} differs between two builds of the same commit")
        _run(sys.executable, "-m", "twine", "check", "--strict", *map(str, first))
        (wheel,) = (file for file in first if file.suffix == ".whl")
        _use(wheel, Path(scratch))
        shutil.rmtree(dist, ignore_errors=True)
        dist.mkdir()
        print(*(shutil.copy(file, dist) for file in first), sep="\n")


def _built(directory: Path, epoch: str) -> list[Path]:
    """Build sdist and wheel of HEAD in a directory of their own; return both files."""
    source, out = directory / "source", directory / "out"
    source.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", str(source)], input=archive, check=True)
    environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch}
    _run(sys.executable, "-m", "build", "--outdir", str(out), str(source), environment=environment)
    for sdist in out.glob("*.tar.gz"):
        _normalize(sdist, int(epoch))
    return sorted(out.iterdir())


def _normalize(sdist: Path, epoch: int) -> None:
    """Write an sdist again with one time, one owner and one order, which setuptools leaves to chance."""
    raw = io.BytesIO()
    with tarfile.open(sdist) as old, tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as new:
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            member.mtime, member.uid, member.gid, member.uname, member.gname = epoch, 0, 0, "", ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.pax_headers = {}
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
    sdist.write_bytes(gzip.compress(raw.getvalue(), mtime=epoch))


def _use(wheel: Path, scratch: Path) -> None:
    """Install a wheel from a wheelhouse alone, and search the demo wiki's pages with it."""
    house, empty, repository = scratch / "wheelhouse", scratch / "empty", scratch / "wiki"
    _run(sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(house), str(wheel))
    venv.create(empty, with_pip=True)
    offline = {"PATH": os.environ["PATH"], "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(house), "HOME": str(scratch)}
    _run(*_WITHOUT_NETWORK, str(empty / "bin" / "pip"), "install", "--quiet", "otterwiki-semantic", environment=offline)
    shutil.copytree(ROOT / "demo" / "pages" / "services", repository / "services")
    for command in (["init", "--quiet"], ["add", "."], ["-c", "user.name=x", "-c", "user.email=x", "commit", "-qm", "pages"]):
        _run("git", "-C", str(repository), *command)
    program = (*_WITHOUT_NETWORK, str(empty / "bin" / "otterwiki-semantic"))
    _run(*program, "index", "--repository", str(repository), environment=offline)
    found = _output(*program, "search", "--repository", str(repository), _DEMO_QUERY, environment=offline)
    if _DEMO_ANSWER not in found:
        sys.exit(f"the installed package does not find {_DEMO_ANSWER}:\n{found}")


def _run(*command: str, environment: dict[str, str] | None = None) -> None:
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


def _output(*command: str, environment: dict[str, str] | None = None) -> str:
    return subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main()
