#!/bin/sh
# Serve in the foreground, with nothing installed. Options are those of `./sampan serve --help`, such as --port 9000.
# Writes nothing into this folder, so it may lie on a read-only medium. Ctrl-C ends the service.
set -eu

file=$0
while [ -h "$file" ]; do # called through links: follow them to the folder of the bundle
    link=$(readlink "$file")
    case $link in
        /*) file=$link ;;
        *) file=${file%/*}/$link ;;
    esac
done
case $file in
    */*) folder=${file%/*} ;;
    *) folder=. ;; # `sh start.sh`
esac
folder=$(CDPATH='' cd -P -- "${folder:-/}" && pwd)

PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
exec "$folder/sampan" serve "$@"
