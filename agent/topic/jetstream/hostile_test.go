package jetstream

import (
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/topic"
)

// TestReplySubject checks that a host cannot have the agent write where the
// host itself may not: it calls the gate with a reply subject of its choice,
// which NATS does not check, after it has put the body that it wants there
// where the gate answers with it.
func TestReplySubject(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	acme := s.log.subjects
	if err := s.station("h01").Versions(t.Context(), []byte(`{"event":"opened"}`)); err != nil {
		t.Fatal(err)
	}
	news, err := s.agent.SubscribeSync(acme.News())
	if err != nil {
		t.Fatal(err)
	}
	run, err := s.log.Append(t.Context(), message.Record{Kind: message.CommandAll, Body: []byte("{}")}, 0)
	if err != nil {
		t.Fatal(err)
	}
	// What the gate itself says is over before anybody listens.
	if _, err := news.NextMsgWithContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	targets := []string{
		acme.Event(), acme.CommandAll(), acme.CommandHost(), acme.Push("h02"), acme.News(), acme.Task("h02"), acme.SeatNews("h02"),
		acme.Reply(run, message.Prepare, "h02"), topic.Subjects{Tenant: "other"}.Event(), "$KV.osu-config.acme", acme.Alive("h99"),
		"$JS.API.STREAM.DELETE." + acme.Stream(), "$JS.API.STREAM.DELETE.KV_osu-config", acme.Inbox("h02") + ".x", acme.Ask(), acme.Call("h02", verbNewest),
	}
	reached := make(chan *nats.Msg, 100)
	for _, target := range targets {
		if _, err := s.agent.ChanSubscribe(target, reached); err != nil {
			t.Fatal(err)
		}
	}
	nc := s.connect("h01")
	for _, verb := range []string{verbLastVersions, verbNewest, verbVersions, verbSeat, verbReply + ".1.prepare", "nonsense"} {
		for _, target := range targets {
			if err := nc.PublishRequest(acme.Call("h01", verb), target, []byte(`{}`)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	// The gate takes calls in order, so this one comes after all of those.
	if _, err := s.station("h01").Newest(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.agent.Flush(); err != nil {
		t.Fatal(err)
	}
	select {
	case msg := <-reached:
		t.Errorf("a host has the agent write to %s", msg.Subject)
	default:
	}
	if last, err := s.log.Last(t.Context()); err != nil || last != run {
		t.Errorf("the log goes on to record %d, %v", last, err)
	}
}

// TestFlood checks that one host that calls without end keeps no other from
// being answered, and that its own versions take one place.
func TestFlood(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	acme := s.log.subjects
	nc := s.connect("h01", nats.CustomInboxPrefix(acme.Inbox("h01")))
	for range 20_000 {
		if err := nc.PublishRequest(acme.Call("h01", verbVersions), acme.Inbox("h01")+".x", []byte(`{"kernel":"6.1"}`)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.station("h02").Versions(t.Context(), []byte(`{"kernel":"6.1"}`)); err != nil {
		t.Fatal(err)
	}
	if last, err := s.log.Last(t.Context()); err != nil || last != 0 {
		t.Errorf("the log has %d records, %v", last, err)
	}
}
