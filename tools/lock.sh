#!/bin/sh
# Renew the locks, after a change of dependencies in pyproject.toml.
#
#   requirements.lock                         the workshop's and the developers' environment, Python >= 3.10
#   src/sampan/data/requirements-target.txt   what travels to every target: the private Python 3.11 on Linux
#   src/sampan/data/converter/requirements.txt   llama.cpp's converter in an environment of its own, without PyTorch
#   tests/clients.lock                        clients of the gateway, for its tests, in an environment of its own
#
# Needs uv (`pip install uv`). The index is the one of uv's own settings (UV_DEFAULT_INDEX…); no address is written
# into the locks. `tools/lock.sh --upgrade` takes the newest versions; without it, the present ones are kept.
set -eu
cd "$(dirname "$0")/.."
UV=${UV:-uv}
export UV_CUSTOM_COMPILE_COMMAND=tools/lock.sh

compile() {
    "$UV" pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate "$@"
}

compile pyproject.toml --extra workshop --extra dev --python-version 3.10 -o requirements.lock "$@"
compile pyproject.toml --python-version 3.11 --only-binary :all: \
    -o src/sampan/data/requirements-target.txt "$@"
compile src/sampan/data/converter/requirements.in --python-version 3.10 \
    -o src/sampan/data/converter/requirements.txt "$@"
compile tests/clients.in --python-version 3.10 --only-binary :all: -o tests/clients.lock "$@"
