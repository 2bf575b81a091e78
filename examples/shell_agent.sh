#!/bin/sh
# An agent in plain shell: curl speaks HTTP, sed and grep read the answers, and nothing else is needed.
#
#   REDKEY_URL=http://127.0.0.1:8700 REDKEY_API_KEY=rk_... REDKEY_AGENT_ID=agt_... sh shell_agent.sh QUEUE
#
# It takes the next task of the queue, keeps its lease alive while it works, and hands the result back, until nothing
# has come for PATIENCE seconds (20). Replace `work` by whatever your agent does.
set -eu

queue=${1:?usage: shell_agent.sh QUEUE}
lease_seconds=${LEASE_SECONDS:-30}
patience=${PATIENCE:-20}
nothing={}
result=$(mktemp)
trap 'rm -f "$result"' EXIT

# call METHOD PATH [JSON]: the answer on standard output; it fails when the server refuses, with the server's words.
call() {
    curl --silent --show-error --fail-with-body --request "$1" "$REDKEY_URL$2" \
        --header "Authorization: Bearer $REDKEY_API_KEY" --header "Content-Type: application/json" \
        --max-time 90 --data "${3:-$nothing}"
}

# field NAME: the first text of that name in the JSON on standard input, escaped as it stands there. The server writes
# its own fields before those that strangers wrote, so nothing in a task can pass for one.
field() {
    grep -oE "\"$1\":\"([^\"\\\\]|\\\\.)*\"" | head -n 1 | sed 's/^[^:]*:"\(.*\)"$/\1/'
}

# work TITLE: the result on standard output. The title is still escaped as JSON wants it, and so must the result be.
work() {
    printf 'Five facts about: %s' "$1"
}

# Wait for the work to end, with a heartbeat at a third of the lease. One call that fails is not a lost lease.
keep_lease() {
    seconds=0
    while kill -0 "$2" 2>/dev/null; do
        sleep 1
        seconds=$((seconds + 1))
        if [ $((seconds % (lease_seconds / 3))) -eq 0 ]; then
            call POST "/claims/$1/heartbeat" >/dev/null || :
        fi
    done
}

while :; do
    answer=$(call POST "/queues/$queue/claim-next" \
        "{\"agentId\": \"$REDKEY_AGENT_ID\", \"leaseSeconds\": $lease_seconds, \"wait\": $patience}") || {
        echo "$answer" >&2
        exit 1
    }
    case $(printf '%s' "$answer" | field status) in
    claimed) ;;
    no_tasks) echo "nothing to do" && exit 0 ;;
    *) echo "$answer" >&2 && exit 1 ;;
    esac

    claim=$(printf '%s' "$answer" | field claimId)
    title=$(printf '%s' "$answer" | field title)
    echo "won: $title"
    call POST "/claims/$claim/start" >/dev/null
    work "$title" >"$result" &
    keep_lease "$claim" $!
    if call POST "/claims/$claim/complete" "{\"summary\": \"$(cat "$result")\"}" >/dev/null; then
        echo "done: $title"
    else
        echo "not taken: $title" >&2 # the lease was lost, and somebody else has the task now: go on with the next
    fi
done
