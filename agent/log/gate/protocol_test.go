package gate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/gate"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestWorkerOfAnotherVersion checks that this site takes workers of its own
// protocol and of the ones beside it, and refuses all others by name.
func TestWorkerOfAnotherVersion(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, r *rig) {
		g := r.gate(r.log)
		var told []string
		g.Refused = func(host string, kind message.WarningKind, why string) {
			told = append(told, fmt.Sprintf("%s: %s: %s", host, kind, why))
		}
		for protocol, refusal := range map[int]string{
			format.Protocol: "", format.Protocol + 1: "",
			format.Protocol + 2: "the other side speaks protocol 2 and 3, this version speaks 1", 0: "the other side tells no protocol, this version speaks 1",
		} {
			told = nil
			a := g.Answer(t.Context(), "h01", gate.Request{Verb: []string{"lease", "0"}, Worker: "one", Incarnation: "p", Protocol: protocol})
			if a.Protocol != format.Protocol {
				t.Errorf("the site does not tell its protocol: %+v", a)
			}
			if a.Error != refusal || a.Refused != (refusal != "") || (a.Lease == nil) != a.Refused {
				t.Errorf("a worker of protocol %d is answered %+v", protocol, a)
			}
			if refusal != "" && strings.Join(told, "") != "h01: protocol: "+refusal+"; upgrade the older of the two, worker or site" || refusal == "" && told != nil {
				t.Errorf("of a worker of protocol %d the site is told %q", protocol, told)
			}
		}
	})
}

// otherSite answers as a site of another version.
type otherSite struct{ response string }

func (s otherSite) Call(_ context.Context, q gate.Request) ([]byte, error) {
	if q.Protocol != format.Protocol {
		return nil, errors.New("the worker tells no protocol")
	}
	return []byte(s.response), nil
}
func (otherSite) Send(gate.Telemetry, string, []byte) error { return nil }
func (otherSite) Connected() bool                           { return true }

// TestSiteOfAnotherVersion checks that this worker works for a site of the next
// protocol, which speaks this one, too, and names the protocols of any other.
func TestSiteOfAnotherVersion(t *testing.T) {
	t.Parallel()
	const lease = `"lease":{"format":9,"worker":"one","epoch":4,"incarnation":"p","more":1}`
	for response, want := range map[string]string{
		`{"protocol":1,` + lease + `}`:                               "",
		`{"protocol":2,` + lease + `,"of-a-newer-version":{"a":[]}}`: "",
		`{"protocol":3,` + lease + `}`:                               "lease: the site speaks another protocol: the other side speaks protocol 2 and 3, this version speaks 1",
		`{"protocol":3,"refused":true,"error":"too old"}`:            "lease: the site speaks another protocol: the other side speaks protocol 2 and 3, this version speaks 1",
	} {
		c := gate.NewClient(gate.ClientOptions{Host: "h01", Incarnation: "p"}, otherSite{response})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		epoch, err := c.Lease(ctx, "one")
		cancel()
		if want == "" && (err != nil || epoch != 4) || want != "" && (!errors.Is(err, log.ErrProtocol) || err.Error() != want) {
			t.Errorf("of %s it makes epoch %d, %v", response, epoch, err)
		}
	}
}

// TestHeartbeatTellsTheProtocol checks that whatever a worker says, its heartbeat
// has the protocol of its client.
func TestHeartbeatTellsTheProtocol(t *testing.T) {
	t.Parallel()
	var sent recorder
	c := gate.NewClient(gate.ClientOptions{Host: "h01", Incarnation: "p"}, &sent)
	if err := c.Alive(message.Alive{Application: "app"}); err != nil {
		t.Fatal(err)
	}
	if a, err := message.DecodeAlive(sent.body); err != nil || a.Protocol != format.Protocol {
		t.Errorf("the heartbeat is %s, %v", sent.body, err)
	}
}

// recorder keeps what is sent.
type recorder struct {
	otherSite
	body []byte
}

func (r *recorder) Send(_ gate.Telemetry, _ string, body []byte) error {
	r.body = body
	return nil
}
