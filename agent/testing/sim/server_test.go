package sim_test

import (
	"flag"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server/ats"
)

var weeks = flag.Int("sim.weeks", 1, "how many weekly windows the embedded server lives through")

// keepAccessTime starts the one goroutine that all embedded servers of a
// process share, outside of any bubble and for good. In a bubble it would hold
// up virtual time, because it waits on a channel that was made outside.
var keepAccessTime = sync.OnceFunc(ats.Register)

// TestRealServer runs what the simulation replaces, the embedded server and
// the transport over it, with the real controller and workers, over weeks of
// virtual time: each weekly window has one run, which completes, each host is
// upgraded once in it, nobody raises an alarm, and that the site is started
// anew in the middle of it changes nothing.
func TestRealServer(t *testing.T) {
	t.Parallel()
	keepAccessTime()
	// The client of NATS keeps timers for later in a sync.Pool, and a bubble may
	// not use those of an earlier one (-count). Two collections empty the pool. So
	// no other test of this package may use NATS, or at least not beside this one.
	runtime.GC()
	runtime.GC()
	defer limit("the fleet with a real server", time.Duration(*weeks)*5*time.Minute)()
	dir, begun := t.TempDir(), time.Now()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, dir)
		for n := range *weeks {
			f.week(n)
		}
	})
	t.Logf("%d weekly windows took %s of real time", *weeks, time.Since(begun).Round(100*time.Millisecond))
}
