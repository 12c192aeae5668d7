package api_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
)

const (
	ofFleetLock  = "/v1/state/tenants/demo/os-upgrade/fleetlock/v1/"
	ownFleetLock = "/v1/state/os-upgrade/fleetlock/v1/"
)

// lockBody is the body of a request of the FleetLock protocol, as Zincati writes it.
func lockBody(id, group string) string {
	return fmt.Sprintf("{\n  \"client_params\": {\n    \"id\": %q,\n    \"group\": %q\n  }\n}", id, group)
}

// fleetLock sends a request of the protocol, and checks its answer: an empty body, or an error with
// a kind and a value.
func (c *caller) fleetLock(path, body string, status int, kind, value string, headers ...string) {
	c.t.Helper()
	a := c.call("POST", path, body, append([]string{"fleet-lock-protocol", "true"}, headers...)...)
	if status == 200 {
		if a.status != 200 || a.body != "" {
			c.t.Errorf("answered %d %q; want 200 and nothing", a.status, a.body)
		}
		return
	}
	var shown map[string]string
	if err := json.Unmarshal([]byte(a.body), &shown); err != nil || len(shown) != 2 || a.header.Get("Content-Type") != "application/json" {
		c.t.Errorf("answered %d %s (%v), which is no error of the protocol", a.status, a.body, err)
	}
	if a.status != status || shown["kind"] != kind || !strings.Contains(shown["value"], value) {
		c.t.Errorf("answered %d %s; want %d %s with %q", a.status, a.body, status, kind, value)
	}
}

// TestFleetLock plays the cases of the FleetLock protocol over HTTP: it is off by default, the same
// id twice, two hosts, other groups, unknown ids, and requests that are none.
func TestFleetLock(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 2)
	const lock, unlock = ofFleetLock + "pre-reboot", ofFleetLock + "steady-state"
	h1, h2 := lockBody("h01", "default"), lockBody("h02", "default")
	c.fleetLock(lock, h1, 404, "fleetlock_off", "set fleetlock to true in the rollout of environment default: osupgrade-agent edit rollout")
	c.want(c.call("PUT", configPath+"/rollout", `{"fleetlock":true}`), 201, "")
	c.fleetLock(unlock, h1, 200, "", "")
	c.fleetLock(lock, h1, 200, "", "")
	c.fleetLock(lock, h1, 200, "", "")
	c.fleetLock(lock, h2, 409, "failed_lock", "host h01 is locked since")
	c.want(c.call("GET", statePath+"/hosts/h01", ""), 200, `"locked-since"`)
	c.fleetLock(unlock, h2, 200, "", "")
	c.fleetLock(ownFleetLock+"steady-state", h1, 200, "", "", "Authorization", c.token("demo", access.FleetLock))
	c.fleetLock(lock, h2, 200, "", "")
	c.fleetLock(lock, lockBody("c988d2509fdf5cdcbed39037c56406fb", "default"), 404, "unknown_host", "start its worker with --label fleetlock-id=c988d2509fdf5cdcbed39037c56406fb")
	c.fleetLock(lock, lockBody("h01", "workers"), 400, "other_group", `client_params.group: "workers" is not the environment of host h01`)
	c.fleetLock(lock, lockBody("h01", "a b"), 400, "bad_request", `client_params.group: "a b" is not a group`)
	c.fleetLock(lock, lockBody("", "default"), 400, "bad_request", "client_params.id: is missing")
	c.fleetLock(lock, `{"client_params":`, 400, "bad_request", "the body is not the JSON of a FleetLock request")
	c.fleetLock(lock, h1, 400, "bad_request", `fleet-lock-protocol: "yes" has to be "true"`, "fleet-lock-protocol", "yes")
	c.fleetLock(lock, h1, 401, "unauthorized", "the token is unknown", "Authorization", "Bearer none")
	c.fleetLock(lock, h1, 403, "forbidden", "does not have the right", "Authorization", c.token("demo", access.Operator))
	c.want(c.call("GET", statePath, "", "Authorization", c.token("demo", access.FleetLock)), 403, "does not have the right")
	c.fleetLock(lock, h1, 401, "unauthorized", "may have the role fleetlock alone", "Authorization", basicOf(c.token("demo", access.Admin)))
	c.want(c.call("POST", statePath+"/release", `{"host":"h02","reason":"it is back"}`), 200, "")
	c.want(c.call("GET", "/v1/state/tenants/demo/audit?object=host/h02", ""), 200, `"action":"lock"`)
	c.fleetLock(lock, h1, 200, "", "")
	c.want(c.call("PUT", configPath+"/rollout", `{}`), 204, "")
	c.fleetLock(unlock, h1, 200, "", "")
	c.fleetLock(unlock, h1, 404, "fleetlock_off", "")
}

// basicOf is the header of a URL that has a token as its password.
func basicOf(bearer string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte("fleetlock:"+strings.TrimPrefix(bearer, "Bearer ")))
}

// TestZincati sends what Zincati 0.0.32 sends, byte for byte: its HTTP client takes user and password
// from the base URL, and names no content type.
func TestZincati(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 1)
	c.want(c.call("PUT", configPath+"/rollout", `{"fleetlock":true}`), 201, "")
	authorization := basicOf(c.token("demo", access.FleetLock))
	for _, operation := range []string{"steady-state", "pre-reboot", "pre-reboot", "steady-state"} {
		body := lockBody("h01", "default")
		host := strings.TrimPrefix(c.dev.Endpoint, "http://")
		connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		_, err = fmt.Fprintf(connection, "POST %s%s HTTP/1.1\r\nauthorization: %s\r\nfleet-lock-protocol: true\r\naccept: */*\r\nhost: %s\r\ncontent-length: %d\r\n\r\n%s", ofFleetLock, operation, authorization, host, len(body), body)
		if err != nil {
			t.Fatal(err)
		}
		answered := make([]byte, len("HTTP/1.1 200 OK"))
		if _, err := io.ReadFull(connection, answered); err != nil || string(answered) != "HTTP/1.1 200 OK" {
			t.Errorf("%s is answered %q, %v", operation, answered, err)
		}
		_ = connection.Close()
	}
	c.want(c.call("GET", "/v1/state/tenants/demo/audit?object=host/h01", ""), 200, `"action":"unlock"`)
}
