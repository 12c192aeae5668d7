package worker

import (
	"context"
	"maps"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/decide"
)

// watchLabels tells the site at once when the labels of the host change.
func (w *Worker) watchLabels(ctx context.Context) {
	if w.LabelFiles == nil {
		return
	}
	changed := func() {
		if !w.readLabels() {
			return
		}
		w.Log.Info("the labels of this host have changed", "host", w.Host, "labels", w.currentLabels())
		if w.lease.now().state == decide.Held {
			w.sendAlive()
		}
	}
	w.follow(ctx, "the files of labels", w.LabelFiles.Watch, changed)
}

// readLabels reads the labels of the host, and reports whether they have changed.
func (w *Worker) readLabels() bool {
	next := w.Labels
	if w.LabelFiles != nil {
		next = w.LabelFiles.Labels()
	}
	before := w.labels.Swap(&next)
	return before == nil || !maps.Equal(*before, next)
}

// currentLabels are the labels that were read last. Nobody changes the map.
func (w *Worker) currentLabels() map[string]string { return *w.labels.Load() }
