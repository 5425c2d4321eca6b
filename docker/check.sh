#!/bin/sh
# Build the image and check a wiki and an MCP server started from it: sh docker/check.sh [option of build ...]
# ENGINE=podman for Podman. Needs curl and port 18080. Containers, volume and network are removed at the end; the image stays.
set -eu
engine=${ENGINE:-docker}
image=otterwiki-semantic:check
name=otterwiki-semantic-check
url=http://127.0.0.1:18080

cleanup() {
    "$engine" rm -f -v "$name" "$name-mcp" >/dev/null 2>&1 || true
    "$engine" volume rm "$name" >/dev/null 2>&1 || true
    "$engine" network rm "$name" >/dev/null 2>&1 || true
}
eventually() { # within two minutes: a commit is found after one at most
    for _ in $(seq 120); do
        if "$@"; then return; fi
        sleep 1
    done
    echo "failed: $*" >&2
    "$engine" logs "$name" >&2
    exit 1
}
finds() { curl -fsS "$url/api/v1/semantic-search?q=$1&n=1" 2>/dev/null | grep -q "\"path\":\"$2\""; }
in_wiki() { "$engine" exec -u www-data "$name" "$@"; }
commit() {
    in_wiki sh -c "cd /app-data/repository && echo '$2' >$1.md && git add $1.md &&
        git -c user.name=check -c user.email=check@localhost commit -qm $1"
}
in_mcp() { "$engine" exec "$name-mcp" "$@"; }
is_refused() { test "$(in_mcp curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8000/mcp)" = 401; }

cd "$(dirname "$0")/.."
trap 'test $? = 0 || echo "the image does not work" >&2; cleanup' EXIT
cleanup
"$engine" build -f docker/Dockerfile -t "$image" "$@" .
"$engine" network create "$name" >/dev/null
"$engine" run -d --name "$name" --network "$name" --security-opt no-new-privileges:true \
    -v "$name:/app-data" -p 127.0.0.1:18080:80 "$image" >/dev/null
eventually finds welcome home
in_wiki curl -fsS -o /dev/null http://127.0.0.1:8080/-/healthz # the health check
commit kettle "Descale the kettle with citric acid."
eventually finds limescale+in+the+kettle kettle
in_wiki otterwiki-semantic doctor --url http://127.0.0.1
"$engine" restart "$name" >/dev/null
eventually finds limescale+in+the+kettle kettle
curl -fsS "$url/api/v1/semantic-search/status" | grep -q '"embedded_texts":0,' # the index was kept

"$engine" run -d --name "$name-mcp" --network "$name" --user www-data --read-only --cap-drop ALL --tmpfs /tmp --tmpfs /app-data \
    -e MCP_AUTH_TOKEN=check -e "OTTERWIKI_URL=http://$name" --entrypoint otterwiki-semantic "$image" \
    mcp --http 0.0.0.0:8000 >/dev/null
eventually is_refused
in_mcp curl -fsS http://127.0.0.1:8000/mcp -H 'Authorization: Bearer check' -H 'Content-Type: application/json' \
    -H 'Accept: application/json, text/event-stream' -d '{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "semantic_search", "arguments": {"query": "limescale"}}}' | grep -q 'citric acid'
echo "the image works"
