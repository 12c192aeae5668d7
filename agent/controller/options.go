package controller

import (
	"context"
	"log/slog"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/guard"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/trace"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Store is the part of the store that a controller uses.
type Store interface {
	WatchIntent(ctx context.Context, tenant string, see func(store.Seen)) error
	Hosts(ctx context.Context, tenant string) ([]store.Host, error)
	PutHost(ctx context.Context, key string, host store.Host) error
	PutLastRuns(ctx context.Context, tenant string, runs []store.LastRun) error
	DeleteHost(ctx context.Context, tenant, key string) error
	// Report returns a report of a host; store.ErrNotFound when there is none.
	Report(ctx context.Context, tenant, key string, id report.ID) (report.Kept, error)
	// Reports returns the reports of a kind of all hosts, and Summaries what lists show of
	// them, by the host's token.
	Reports(ctx context.Context, tenant string, kind *report.Kind) (map[string]report.Kept, error)
	Summaries(ctx context.Context, tenant string, kind *report.Kind) (map[string]report.Summary, error)
	// WatchReports follows the reports of a kind with a history, ReportsNumber is the number
	// of the last one.
	WatchReports(ctx context.Context, tenant string, kind *report.Kind, see func(store.Reported)) error
	ReportsNumber(ctx context.Context, tenant string, kind *report.Kind) (uint64, error)
	PutRun(ctx context.Context, tenant string, r v1.Run, asOf uint64) error
	Run(ctx context.Context, tenant string, id uint64) (v1.Run, error)
	Runs(ctx context.Context, tenant string, deliver func(v1.Run) (more bool)) error
}

// Runner runs the tasks that are run at the site.
type Runner interface {
	Run(ctx context.Context, t message.Task) message.Outcome
}

// Secrets seal the outputs of steps.
type Secrets interface {
	// Seal seals a secret for a purpose, Open opens it for the same purpose.
	Seal(secret []byte, purpose string) (string, error)
	Open(sealed, purpose string) ([]byte, error)
}

// Options are what a controller is made with.
type Options struct {
	Tenant string
	// Zone is the site's time zone, for windows that are site-local.
	Zone *time.Location
	Log  log.Log
	// HostEvents delivers what hosts say beside the log.
	HostEvents log.HostEvents
	Guard      *guard.Guard
	Store      Store
	// News keeps what is told; nil means that nothing is.
	News NewsStore
	// Holder returns who holds the lease of a host, nil when nobody ever did; it may
	// be nil.
	Holder func(ctx context.Context, host string) (*v1.HostLease, error)
	// Site runs the tasks that are run at the site; nil lets each of them fail.
	Site Runner
	// SiteScripts returns the scripts that Site has; nil when nobody can say.
	SiteScripts func() []string
	// Secrets seal the outputs of steps; without them a step that has outputs fails.
	Secrets Secrets
	// Labels returns the labels that a host was given when it joined, which win over those that
	// it reports; nil means none.
	Labels func(host string) map[string]string
	Logger *slog.Logger
	// Observer is told what happens, for metrics; nil means nobody.
	Observer Observer
	// Traces takes the spans of runs; nil means that nobody wants them.
	Traces trace.Exporter
	// Now is the clock; nil means the wall clock.
	Now func() time.Time
	// At is called with the label of each action before it and after
	// it: tests crash there. Nil is allowed.
	At func(label string)
}
