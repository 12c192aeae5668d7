package message_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// TestUntilBeat checks that heartbeats of any two hosts fall together, and that
// none comes later than after Heartbeat, or much sooner.
func TestUntilBeat(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		now := time.Unix(0, rapid.Int64Range(0, 1<<62).Draw(rt, "now"))
		wait := message.UntilBeat(now)
		if wait > message.Heartbeat || wait <= message.Heartbeat-5*time.Second {
			rt.Errorf("at %s the wait is %s", now, wait)
		}
		if at := now.Add(wait); at.Second()%5 != 0 || at.Nanosecond() != 0 {
			rt.Errorf("the heartbeat is at %s", at)
		}
	})
}

// TestSelfReport checks that what a host says of itself is bounded, at either end.
func TestSelfReport(t *testing.T) {
	t.Parallel()
	many := make([]string, message.MaxScripts+1)
	for i := range many {
		many[i] = "s"
	}
	long := []string{strings.Repeat("x", message.MaxScriptsText+1)}
	for name, row := range map[string]struct {
		scripts []string
		known   bool
	}{"none": {nil, true}, "some": {[]string{"a", "b"}, true}, "too many": {many, false}, "too long": {long, false}} {
		report := message.NewSelfReport(row.scripts, errors.Join(errors.New("one"), errors.New("two\nlines")))
		if (report.Scripts != nil) != row.known || !slices.Equal(report.Lacks, []string{"one", "two", "lines"}) {
			t.Errorf("%s: %+v", name, report)
		}
		again, err := message.DecodeAlive(message.Alive{Application: "app", SelfReport: report}.Encode())
		if err != nil || !reflect.DeepEqual(again.SelfReport, report) {
			t.Errorf("%s: %+v, %v; sent was %+v", name, again.SelfReport, err, report)
		}
		_, err = message.DecodeAlive(message.Alive{Application: "app", SelfReport: message.SelfReport{Scripts: row.scripts}}.Encode())
		if (err == nil) != row.known {
			t.Errorf("%s: a heartbeat with that is read with %v", name, err)
		}
	}
	lacks := message.SelfReport{Lacks: many}
	if again, err := message.DecodeAlive(message.Alive{Application: "app", SelfReport: lacks}.Encode()); err != nil || len(again.Lacks) > 10 {
		t.Errorf("%d lacks are kept, %v", len(again.Lacks), err)
	}
}

// TestAliveReleases checks that a host says of each kind of release that there is once that it carries
// it out, however often it says so.
func TestAliveReleases(t *testing.T) {
	t.Parallel()
	said := message.Alive{Application: "app", Releases: []release.Kind{"images", "firmware", "data", "images"}}
	got, err := message.DecodeAlive(said.Encode())
	if want := []release.Kind{release.OfData, release.OfImages}; err != nil || !slices.Equal(got.Releases, want) {
		t.Errorf("read as %v, %v; want %v", got.Releases, err, want)
	}
	if got, err = message.DecodeAlive(message.Alive{Application: "app"}.Encode()); err != nil || got.Releases != nil {
		t.Errorf("a host that says nothing carries out %v, %v", got.Releases, err)
	}
}
