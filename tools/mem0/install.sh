#!/usr/bin/env bash
# Installs mem0's libraries for Node and Python into a directory. The one for Node keeps
# its vectors in SQLite, in a module that is compiled here.
set -euo pipefail
dir=${1:?the directory}
mkdir -p "$dir"
npm install --prefix "$dir" --silent --no-package-lock --no-fund --no-audit mem0ai@3.3.1
python3 -m venv "$dir/python"
"$dir/python/bin/pip" install --quiet --disable-pip-version-check mem0ai==2.2.1
