package cli

import (
	"strings"
	"testing"
	"time"

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
		for _, want := range []string{"has begun with 1 host;", ": 1 host, not after", "0 of 1 host upgraded"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is missing in:\n%s", want, got)
			}
		}
	})
}
