package worker

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// witness is a station that looks into the journal whenever a reply is sent.
type witness struct {
	*station
	r *rig
}

func (w witness) Reply(ctx context.Context, run uint64, reply message.Reply) error {
	j, err := ReadJournal(filepath.Join(w.r.dir, "state", "journal.json"))
	if err != nil || j.Phase != Answering || j.Run != run || j.Action != reply.Action || j.Result != reply.Result {
		w.r.t.Errorf("%s of run %d is answered %q, and the journal says %+v, %v", reply.Action, run, reply.Result, j, err)
	}
	return w.station.Reply(ctx, run, reply)
}

// TestReplyComesAfterItsJournal checks that no reply is sent that is not on
// disk: a worker that is killed in between would come to another result, and
// the log would keep the first.
func TestReplyComesAfterItsJournal(t *testing.T) {
	t.Parallel()
	inBubble(t, func(r *rig) {
		r.change = func(o *Options) { o.HostLog = witness{r.station, r} }
		if !wholeRun(r) {
			t.Error("the reboot is lost without a crash")
		}
	})
}
