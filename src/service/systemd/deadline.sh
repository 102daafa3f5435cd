#!/bin/sh
# Written by vramp. Run by a timer of systemd when a trial was not kept in time: the production value comes back.
#   deadline.sh SCOPE UNIT LOG PATIENCE URL FOLDER [card=INDEX:MIB]... [unit=NAME]...
# It is read whole before it begins: the files around it go away while it runs.
main() {
  scope=$1 unit=$2 log=$3 patience=$4 url=$5 folder=$6
  shift 6
  cards='' units=''
  for word; do
    case $word in
      card=*) cards="$cards ${word#card=}" ;;
      unit=*) units="$units ${word#unit=}" ;;
    esac
  done
  say "the trial was not kept in time: stopping $unit"
  systemctl "$scope" stop -- "$unit" || say "systemctl stop ended with code $?"
  rm -f -- "$folder"/z*-vramp-trial.conf "$folder"/z*-vramp-trial.env
  systemctl "$scope" daemon-reload || say "systemctl daemon-reload ended with code $?"
  while held=$(held_cards) && [ -n "$held" ]; do
    if [ "$patience" -le 0 ]; then
      say "NOT started: still occupied:$held; end what holds them, then systemctl start $unit"
      exit 1
    fi
    patience=$((patience - 1))
    sleep 1
  done
  systemctl "$scope" reset-failed -- "$unit" 2>/dev/null
  if ! systemctl "$scope" start --no-block -- "$unit"; then
    say "NOT started: systemctl start ended with code $?"
    exit 1
  fi
  verify
  for other in $units; do
    systemctl "$scope" start --no-block -- "$other" || say "$other could not be started again"
  done
}

say() { printf '%s %s\n' "$(date '+%Y-%m-%d %H:%M:%S')" "$*" >>"$log"; }

# Cards that hold more than without the server: 512 MiB or 2 % above it.
held_cards() {
  [ -n "$cards" ] && command -v nvidia-smi >/dev/null || return 0
  nvidia-smi --query-gpu=index,memory.used,memory.total --format=csv,noheader,nounits 2>/dev/null |
    while IFS=', ' read -r index used total; do
      for card in $cards; do
        [ "${card%%:*}" = "$index" ] || continue
        slack=$((total / 50))
        [ "$slack" -ge 512 ] || slack=512
        [ "$used" -le $((${card##*:} + slack)) ] || printf ' card %s (%s MiB)' "$index" "$used"
      done
    done
}

# One token, where curl is there to ask for it; else that the unit stays up.
verify() {
  tries=0
  while [ "$tries" -lt 900 ]; do
    tries=$((tries + 1))
    sleep 1
    state=$(systemctl "$scope" is-active -- "$unit")
    if [ "$state" = failed ] || [ "$state" = inactive ]; then
      say "started, and it has ended again ($state): see systemctl status $unit"
      return
    fi
    if ! command -v curl >/dev/null; then
      [ "$tries" -lt 10 ] || { say "the production value is back ($state; no curl to ask it for a token)"; return; }
      continue
    fi
    model=$(curl -fsS -m 10 "$url/v1/models" 2>/dev/null | tr ',{' '\n\n' | sed -n 's/^ *"id": *"\([^"]*\)".*/\1/p' | head -n 1)
    [ -n "$model" ] || continue
    if curl -fsS -m 120 -H 'Content-Type: application/json' -d "{\"model\":\"$model\",\"prompt\":\"Hi\",\"max_tokens\":1}" \
      "$url/v1/completions" 2>/dev/null | grep -q '"choices"'; then
      say "the production value is back, proven with a token"
      return
    fi
  done
  say "started, and it does not answer: see systemctl status $unit"
}

main "$@"
exit 0
