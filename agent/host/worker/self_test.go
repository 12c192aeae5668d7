package worker

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestSelfCheck checks that a look which hangs keeps what was found before, delays
// nobody and is not begun twice.
func TestSelfCheck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s self
		var looks atomic.Int32
		s.look(t.Context(), func(context.Context) message.SelfReport { return message.SelfReport{Scripts: []string{"a"}} })
		synctest.Wait()
		hangs := func(ctx context.Context) message.SelfReport {
			looks.Add(1)
			<-ctx.Done()
			return message.SelfReport{Lacks: []string{"it hangs"}}
		}
		s.look(t.Context(), hangs)
		s.look(t.Context(), hangs)
		synctest.Wait()
		if got := s.last(); looks.Load() != 1 || !slices.Equal(got.Scripts, []string{"a"}) {
			t.Errorf("after %d looks it is %+v", looks.Load(), got)
		}
		s.look(t.Context(), nil)
	})
}
