#!/bin/sh
# Keeps one sampan service alive without systemd. Written by `sampan install --script`; runs as whoever starts it.
#
#   sh service.sh start | stop | restart | show | logs
#
# At boot: a line `@reboot sh "…/service.sh" start` in `crontab -e`. Writes only into the folder run beside it: two pid
# files and the service's log, of which one older part of 10 MB is kept.
set -u
folder=@PREFIX@
run=$folder/run
log=$run/service.log
umask 077

become() { # becomes the service, and says under which number before
    echo $$ >"$run/service.pid"
    cd "$folder/current" || exit 1
    SAMPAN_LANG=@LANGUAGE@ PYTHONDONTWRITEBYTECODE=1 NO_PROXY='*' no_proxy='*'
    HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1
    export SAMPAN_LANG PYTHONDONTWRITEBYTECODE NO_PROXY no_proxy HF_HUB_OFFLINE TRANSFORMERS_OFFLINE
    exec "$folder/current/sampan" @COMMAND@
}

pid_of() { # pid_of FILE WORD: the process that the file names, if it still is the one that wrote it
    pid=$(cat "$run/$1" 2>/dev/null) || return 1
    case $pid in '' | *[!0-9]*) return 1 ;; esac
    tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -q -F -e "$2" || return 1
    printf '%s\n' "$pid"
}

keeper() { pid_of keeper.pid "service.sh keep"; }
service() { pid_of service.pid " serve "; }

claim() { # be the only keeper: two may be started at once where a command was killed and the next one came quickly
    while ! (set -C && echo $$ >"$run/keeper.pid") 2>/dev/null; do
        [ -d "$run" ] || return 1 # taken away meanwhile
        keeper >/dev/null && return 1
        sleep 1 # the other may be about to write its number
        keeper >/dev/null && return 1
        rm -f "$run/keeper.pid" # of one that was killed
    done
}

keep() { # start the service again whenever it ends
    claim || exit 0
    trap 'ended=yes; [ -z "$child" ] || kill "$child" 2>/dev/null' TERM INT HUP
    ended='' child=''
    echo 0 >"$run/restarts"
    while [ -z "$ended" ]; do
        if [ "$(wc -c <"$log" 2>/dev/null || echo 0)" -gt 10000000 ]; then mv -f "$log" "$log.1"; fi
        sh "$folder/service.sh" become >>"$log" 2>&1 </dev/null &
        child=$!
        wait "$child" # ends early when a signal comes
        while kill -0 "$child" 2>/dev/null; do wait "$child"; done
        [ -n "$ended" ] && break
        echo $(($(cat "$run/restarts") + 1)) >"$run/restarts"
        sleep 5 &
        child=$!
        wait "$child"
    done
    rm -f "$run/keeper.pid" "$run/service.pid"
}

gone() { # gone PID: wait up to 60 s until it is gone
    seconds=0
    while kill -0 "$1" 2>/dev/null; do
        [ "$seconds" -lt 60 ] || return 1
        sleep 1
        seconds=$((seconds + 1))
    done
}

stop() {
    for one in "$(keeper)" "$(service)"; do # the second only where the first was killed
        [ -z "$one" ] || ! kill "$one" 2>/dev/null || gone "$one" || kill -9 "$one"
    done
}

recover() { # let the release that was in force take back an upgrade that was cut off, unless it still is at work
    [ -x "$folder/.before/sampan" ] && ! keeper >/dev/null || return 0
    mkdir -p "$run"
    if said=$("$folder/.before/sampan" recover --prefix "$folder" 2>&1) || [ $? -ne 13 ]; then # 13: it is
        printf '%s\n' "$said" >>"$log"
    fi
    return 0
}

start() {
    keeper >/dev/null && return
    stop
    mkdir -p "$run"
    rm -f "$run/service.pid"
    if command -v setsid >/dev/null 2>&1; then
        setsid sh "$folder/service.sh" keep >/dev/null 2>&1 </dev/null &
    else
        nohup sh "$folder/service.sh" keep >/dev/null 2>&1 </dev/null &
    fi
}

show() { # as `systemctl show` says it
    main=$(service) || main=''
    if [ -n "$main" ]; then
        printf 'ActiveState=active\nSubState=running\n'
    elif keeper >/dev/null; then
        printf 'ActiveState=activating\nSubState=%s\n' \
            "$([ "$(cat "$run/restarts" 2>/dev/null)" = 0 ] && echo start || echo auto-restart)"
    else
        printf 'ActiveState=inactive\nSubState=dead\n'
    fi
    printf 'MainPID=%s\nNRestarts=%s\n' "${main:-0}" "$(cat "$run/restarts" 2>/dev/null || echo 0)"
}

logs() {
    lines=100 follow=''
    for word in "$@"; do
        case $word in
            --lines=*) lines=${word#*=} ;;
            --follow) follow=-f ;;
        esac
    done
    exec tail -n "$lines" $follow "$log"
}

verb=${1-}
[ $# -eq 0 ] || shift
case $verb in
    start) recover && start ;; # at boot; a restart is a step of the upgrade itself
    stop) stop ;;
    restart) stop && start ;;
    show) show ;;
    logs) logs "$@" ;;
    keep) keep ;;
    become) become ;;
    enable | disable | daemon-reload | reset-failed) ;; # systemd's words that have no meaning here
    *)
        echo "usage: sh service.sh start | stop | restart | show | logs" >&2
        exit 2
        ;;
esac
