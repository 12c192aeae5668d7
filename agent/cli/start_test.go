package cli

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestStartOfNamedHosts checks that a start of named hosts counts those alone, though another
// host takes a slot and is shown with the run.
func TestStartOfNamedHosts(t *testing.T) {
	t.Parallel()
	play(t, intended{rollout: &v1.Rollout{Absent: "count", MinPrepared: "100%"}}, threeHosts, func(s *scene) {
		s.silence("h03")
		s.pass(5 * time.Minute)
		begun := s.types("start", "--host", "h01", "--override-window", "--reason", "a test")
		watched := s.watches("watch")
		s.pass(time.Minute)
		got := begun + watched() + s.types("status")
		for _, want := range []string{"has begun with 1 host (--host h01);", ": 1 host, not after", "0 of 1 host upgraded"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is missing in:\n%s", want, got)
			}
		}
	})
}

// TestStartOfChosenHosts checks that a start by label tells how many hosts it chose, and that one
// which chooses none says what there is.
func TestStartOfChosenHosts(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.SetHosts("acme", v1.Host{Hostname: "h01", Labels: map[string]string{"shop": "basel"}}, v1.Host{Hostname: "h02"})
	s.OnStart(func(tenant string, r v1.Run) { s.FinishRun(tenant, r.ID, "failed", "so it is") })
	start := func(args ...string) string {
		_, stdout, stderr := call(t, as(t, s.URL, s.Token, "acme", args...)...)
		return stdout + stderr
	}
	if got := start("start", "--label", "shop=basel", "--output", "json"); !strings.Contains(got, `"hostname": "h01"`) || strings.Contains(got, "h02") {
		t.Errorf("start prints %s", got)
	}
	s.EditRun("acme", s.Runs("acme")[0].ID, func(r *v1.Run) { r.Hosts[0].Status = "failed" })
	if got := start("retry", fmt.Sprint(s.Runs("acme")[0].ID), "--label", "shop=bern,basel"); !strings.Contains(got, " (--label shop=bern,basel); no host starts after ") {
		t.Errorf("retry prints %s", got)
	}
	if got := start("start", "--label", "shop"); !strings.HasPrefix(got, `osupgrade-agent: --label: "shop" is not a label; use KEY=VALUE`) {
		t.Errorf("start prints %s", got)
	}
}

// TestStartUntil checks what a run until a stage says of itself, also once it has ended, and that a stage
// which the rollout does not have is refused with those that it has.
func TestStartUntil(t *testing.T) {
	t.Parallel()
	play(t, intended{rollout: stepped()}, threeHosts, func(s *scene) {
		until := func(stage string, more ...string) string {
			return s.types(append([]string{"start", "--until", stage, "--override-window", "--reason", "a test"}, more...)...)
		}
		unknown, planned, begun := until("swap"), until("standby", "--dry-run"), until("standby")
		s.pass(10 * time.Minute)
		got := unknown + planned + begun + s.types("status") + until("standby")
		// start, status and watch tell the same two times by the same words.
		notAfter := regexp.MustCompile(`no host starts after (.+), and it ends by (.+)\.\n`).FindStringSubmatch(begun)
		if watched := s.types("watch", "2"); notAfter == nil || !strings.Contains(watched, "1 host, not after "+notAfter[1]) {
			t.Errorf("start says %q, watch says\n%s", begun, watched)
		}
		for _, want := range []string{
			`until: "swap" is no stage of the rollout; use one of standby, switch-over, rest`,
			"stage switch-over:  for a later run\nstage rest:         for a later run\n",
			"has begun with 1 host, until stage standby; no host starts after Sat 2026-11-21 ",
			"until:        stage standby; the next run goes on there\n",
			"completed: 1 of 1 host upgraded, until stage standby\n",
			"switch-over  later  -      -         -       a step\nrest         later  2      0         -\n",
			"nothing is left to do until stage standby: the runs since run 2 have done it; name a later stage",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is missing in:\n%s", want, got)
			}
		}
	})
}
