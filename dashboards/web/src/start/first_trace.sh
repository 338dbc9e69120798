curl -sS SERVER/v1/traces \
  -H 'Authorization: Bearer KEY' \
  -H 'Content-Type: application/json' -d '{
  "resourceSpans": [{
    "resource": {"attributes": [
      {"key": "service.name", "value": {"stringValue": "com.example.shop"}},
      {"key": "service.version", "value": {"stringValue": "4.12.0"}},
      {"key": "app.installation.id", "value": {"stringValue": "my first device"}}]},
    "scopeSpans": [{"spans": [{"name": "checkout", "kind": 1,
      "traceId": "4bf92f3577b34da6a3ce929d0e0e4736", "spanId": "00f067aa0ba902b8",
      "startTimeUnixNano": "'$(date +%s)'000000000", "endTimeUnixNano": "'$(date +%s)'041250000"}]}]}]
}'
