# What a person would do on the target, one step after the other. Runs there, as an unprivileged user, in its shell.
#
# Lines that begin with @ are for the machine: @begin NAME COMMAND, the command's own output, @end NAME EXIT-CODE.
set -u
umask 022
ulimit -c 0
cd "$HOME" || exit 1
bundle=/media/$bundle_name
log=$HOME/serve.log
url=http://127.0.0.1:$port

begin() { printf '\n@begin %s\n' "$*"; }
end() { printf '\n@end %s\n' "$*"; }

# wget's own -T crashes in Debian 12's static BusyBox.
fetch() { timeout "$1" wget -q -O - "$2"; }

# step NAME SECONDS COMMAND…: run it, show it, give its exit code.
step() {
  step_name=$1 step_limit=$2
  shift 2
  begin "$step_name" "$*"
  timeout "$step_limit" "$@" </dev/null 2>&1
  step_code=$?
  end "$step_name" "$step_code"
  return "$step_code"
}

# The state letter in /proc/PID/stat: a child that has ended stays as Z until it is waited for.
alive() {
  { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
  case $line in *') Z '*) return 1 ;; esac
}

show_machine() {
  begin machine
  uname -m
  id
  grep NoNewPrivs /proc/self/status
  echo "interfaces $(sed -n 's/^ *\([^ :]*\):.*/\1/p' /proc/net/dev | tr '\n' ' ')"
  echo "auxv $(od -An -v -tx8 /proc/self/auxv | tr -s ' \n' ' ')"
  echo "root $(ls / | tr '\n' ' ')"
  echo "dev $(ls /dev | tr '\n' ' ')"
  end machine 0
}

# Start the service in the background, wait until it answers.
start() {
  begin serve "$* &"
  "$@" >"$log" 2>&1 &
  service=$!
  late=1 count=0
  while [ "$count" -lt "$((2 * ready_limit))" ]; do
    if fetch 5 "$url/health" >/dev/null 2>/dev/null; then
      late=0
      break
    fi
    alive "$service" || break
    sleep 0.5
    count=$((count + 1))
  done
  if [ "$late" = 0 ]; then
    end serve ready
    return 0
  fi
  if alive "$service"; then
    end serve late
  else
    wait "$service"
    end serve "$?"
  fi
  return 1
}

# Ask the service to end; after the limit it is ended hard, which shows as exit code 137.
stop() {
  begin stop "kill -TERM"
  kill -TERM "$service"
  count=0
  while alive "$service" && [ "$count" -lt "$((5 * stop_limit))" ]; do
    sleep 0.2
    count=$((count + 1))
  done
  if alive "$service"; then kill -KILL "$service"; fi
  wait "$service"
  end stop "$?"
}

# BusyBox's timeout leaves a watcher behind for up to a second; it is ours, not the service's.
show_process() {
  words=$({ tr '\0' ' ' <"/proc/$1/cmdline"; } 2>/dev/null)
  case $words in '' | *timeout*) return ;; esac
  echo "process $words"
}

# What the service left behind: processes but this shell and the namespace's first, sockets, an open port.
show_rest() {
  begin rest
  for place in /proc/[0-9]*; do
    number=${place#/proc/}
    [ "$number" = 1 ] || [ "$number" = "$$" ] || show_process "$number"
  done
  find /home /tmp /dev/shm -type s | sed 's/^/socket /'
  find /tmp /dev/shm ! -type d ! -type s | sed 's/^/file /'
  if fetch 2 "$url/health" >/dev/null 2>/dev/null; then echo "port $port"; fi
  end rest 0
}

show_log() {
  begin log
  if [ -f "$log" ]; then
    if [ "$(wc -l <"$log")" -le 60 ]; then cat "$log"; else head -n 20 "$log" && tail -n 40 "$log"; fi
  fi
  end log 0
}

rehearse() {
  cd "$bundle" || return 1
  step install "$install_limit" ./install.sh --no-service --prefix "$prefix" || return 1
  cd "$prefix/current" || return 1
  start ./sampan serve || return 1
  step models "$http_limit" wget -q -O - "$url/v1/models"
  step selftest "$selftest_limit" ./sampan selftest --once --json
  step status "$http_limit" ./sampan status --json
  stop
}

# For tests: the bundle serves from where it lies until the file `stop` appears in the user's home.
session() {
  cd "$bundle" || return 1
  start ./start.sh || return 1
  count=0
  while [ ! -e "$HOME/stop" ] && alive "$service" && [ "$count" -lt "$session_limit" ]; do
    sleep 1
    count=$((count + 1))
  done
  stop
}

show_machine
"$mode"
show_log
show_rest
echo "@done"
