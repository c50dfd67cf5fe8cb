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

case ${SAMPAN_LANG:-${LC_ALL:-${LC_MESSAGES:-${LANG:-}}}} in
    zh*.[Gg][Bb]*) language=en ;; # this file is UTF-8
    zh*) language=zh ;;
    *) language=en ;;
esac

say() { # say ENGLISH CHINESE
    if [ "$language" = zh ]; then printf '%s\n' "$2"; else printf '%s\n' "$1"; fi
}

case ${1-} in
    -h | --help)
        say "Usage: ./start.sh [OPTIONS]
Serve in the foreground, with nothing installed; Ctrl-C ends it.
  --port N           port (default: the bundle's own, usually 8080)
  --host ADDRESS     where it listens (default 127.0.0.1; 0.0.0.0 is every address, and needs API keys)
All options: ./sampan serve --help" "用法：./start.sh [选项]
在前台提供服务，不安装任何东西；Ctrl-C 结束。
  --port 端口        服务端口（默认取部署包中的设置，一般为 8080）
  --host 地址        监听地址（默认 127.0.0.1；0.0.0.0 表示所有地址，须先有 API 密钥）
全部选项：./sampan serve --help"
        exit 0
        ;;
esac

refused() {
    say "$folder/sampan may not run from here: it is missing, the disk is mounted noexec, or the copy lost its file modes.
Unpack the tar with 'tar xf' on another disk, such as /opt or your home." "无法从此处运行 $folder/sampan：文件缺失、磁盘以 noexec 挂载，或复制时丢失了权限位。
请用 tar xf 把部署包解到其他磁盘，例如 /opt 或用户主目录。" >&2
    exit 4
}

[ -x "$folder/sampan" ] || refused
trap refused EXIT # BusyBox sees no noexec beforehand: only where exec failed does this shell come to its end

PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
exec "$folder/sampan" serve "$@"
