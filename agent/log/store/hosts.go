package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Host is what is known of a host between two starts of the agent. What runs have told of it
// is as of when it was written: later runs are on the log, or in LastRun.
type Host struct {
	Tenant       string `json:"tenant"`
	Name         string `json:"name"`
	Application  string `json:"application"`
	AgentVersion string `json:"agent-version,omitempty"`
	Protocol     int    `json:"protocol,omitempty"`
	// Releases are the kinds of releases that it carries out.
	Releases []release.Kind `json:"releases,omitempty"`
	// Rollbacks means that its worker can roll back a run.
	Rollbacks bool `json:"rollbacks,omitempty"`
	// Role and Labels are what a rollout chooses the host by.
	Role   string            `json:"role,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	// Environment is the environment that the host is in, empty for default; Unplaced means that
	// it is in none, because several match it.
	Environment string `json:"environment,omitempty"`
	Unplaced    bool   `json:"unplaced,omitempty"`
	// Assigned is the environment that somebody has moved the host to, default by its name for
	// people; empty when its environment follows from what matches it.
	Assigned string `json:"assigned,omitempty"`
	// LastRun is the last ended run that the host was a member of, MissedSince when
	// the first run ended that should have upgraded it and did not.
	LastRun     v1.HostRun `json:"last-run,omitzero"`
	MissedSince time.Time  `json:"missed-since,omitzero"`
	// Release is the release that it has, and Was the one that it had before, as far as the last runs
	// that upgraded it had releases (promotion.Host).
	Release release.Ref `json:"release,omitzero"`
	Was     release.Ref `json:"was,omitzero"`
	// ChangedBy is the last run that has changed the host, or may have: a rollback only if the host is
	// back; 0 for none.
	ChangedBy uint64 `json:"changed-by,omitempty"`
	// OutdatedSince is since when an upgrade would change something on it.
	OutdatedSince time.Time `json:"outdated-since,omitzero"`
}

// PutHost keeps a host; key is its name as one subject token. Only the
// controller of the host's tenant writes it, so the last write counts.
func (s *Store) PutHost(ctx context.Context, key string, host Host) error {
	body, err := format.Host.Encode(host)
	if err != nil {
		return err
	}
	if _, err := s.hosts.Put(ctx, host.Tenant+"."+key, body); err != nil {
		return fmt.Errorf("cannot keep host %s: %w", host.Name, err)
	}
	return nil
}

// LastRun is what the last ended run of some hosts has told of them. It is kept before that run
// is trimmed from the log.
type LastRun struct {
	Run         v1.HostRun  `json:"run"`
	MissedSince time.Time   `json:"missed-since,omitzero"`
	Release     release.Ref `json:"release,omitzero"`
	Was         release.Ref `json:"was,omitzero"`
	ChangedBy   uint64      `json:"changed-by,omitempty"`
	Hosts       []string    `json:"hosts"`
}

// LastRuns returns the last runs of hosts, with one entry for all hosts that came out of a run in
// the same way.
func LastRuns(hosts []Host) (all []LastRun) {
	type told struct {
		run          v1.HostRun
		missed       time.Time
		release, was release.Ref
		changed      uint64
	}
	places := map[told]int{}
	for _, h := range hosts {
		if h.LastRun.ID == 0 {
			continue
		}
		same := told{h.LastRun, h.MissedSince.UTC(), h.Release, h.Was, h.ChangedBy}
		same.run.EndedAt = nil // It is that of the run.
		place, known := places[same]
		if !known {
			place = len(all)
			places[same] = place
			all = append(all, LastRun{Run: h.LastRun, MissedSince: h.MissedSince, Release: h.Release, Was: h.Was, ChangedBy: h.ChangedBy})
		}
		all[place].Hosts = append(all[place].Hosts, h.Name)
	}
	return all
}

// WithoutHosts returns last runs without those of some hosts.
func WithoutHosts(runs []LastRun, gone []string) (left []LastRun) {
	without := map[string]bool{}
	for _, name := range gone {
		without[name] = true
	}
	for _, r := range runs {
		r.Hosts = slices.DeleteFunc(slices.Clone(r.Hosts), func(name string) bool { return without[name] })
		if len(r.Hosts) > 0 {
			left = append(left, r)
		}
	}
	return left
}

// HostEntry is a host as it is kept, and the number of the write.
type HostEntry struct {
	Host
	Number uint64
}

// WithLastRuns adds their last runs to hosts. The number is that of the write that stored these. A
// host written after it stays as it is: it may have been deleted and have come back.
func WithLastRuns(entries []HostEntry, runs []LastRun, number uint64) []Host {
	last := map[string]*LastRun{}
	for i := range runs {
		for _, name := range runs[i].Hosts {
			last[name] = &runs[i]
		}
	}
	hosts := make([]Host, len(entries))
	for i, e := range entries {
		if r := last[e.Name]; r != nil && e.Number < number && r.Run.ID > e.LastRun.ID {
			e.LastRun, e.MissedSince, e.Release, e.Was, e.ChangedBy = r.Run, r.MissedSince, r.Release, r.Was, r.ChangedBy
		}
		hosts[i] = e.Host
	}
	return hosts
}

// keptLastRuns is the body of the entry with the last runs of a tenant's hosts.
type keptLastRuns struct {
	Runs []LastRun `json:"runs"`
}

// lastRunsKey has three tokens, so that it is the key of no host.
func lastRunsKey(tenant string) string { return tenant + "._.last-runs" }

// PutLastRuns replaces the last runs of a tenant's hosts.
func (s *Store) PutLastRuns(ctx context.Context, tenant string, runs []LastRun) error {
	body, err := format.LastRuns.Encode(keptLastRuns{runs})
	if err != nil {
		return err
	}
	if _, err := s.hosts.Put(ctx, lastRunsKey(tenant), body); err != nil {
		return fmt.Errorf("cannot keep the last runs of the hosts of tenant %s: %w", tenant, err)
	}
	return nil
}

// DeleteHost forgets a host, its reports and its lease; one that is not there is no error. The
// host goes last: what fails in between can be done again.
func (s *Store) DeleteHost(ctx context.Context, tenant, key string) error {
	var buckets []jetstream.KeyValue
	for _, kind := range report.OfHosts() {
		buckets = append(buckets, s.reports.buckets[kind])
	}
	for _, bucket := range append(buckets, s.leases, s.hosts) {
		if err := bucket.Delete(ctx, tenant+"."+key); err != nil {
			return fmt.Errorf("cannot delete host %s of tenant %s: %w", key, tenant, err)
		}
	}
	return nil
}

// Hosts returns the hosts that are known of a tenant, in no order.
func (s *Store) Hosts(ctx context.Context, tenant string) (hosts []Host, err error) {
	done, err := s.hosts.begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot read the hosts of tenant %s: %w", tenant, err)
	}
	defer done()
	var read hostEntries
	err = watch(ctx, s.hosts, tenant+".>", func(entry jetstream.KeyValueEntry) bool {
		return entry != nil && read.add(entry, lastRunsKey(tenant)) // Nil is the end of the initial values.
	}, jetstream.IgnoreDeletes())
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read the hosts of tenant %s: %w", tenant, err)
	case read.err != nil:
		return nil, read.err
	}
	return WithLastRuns(read.hosts, read.runs, read.number), nil
}

// hostEntries are the entries of a tenant's hosts, and the error of the first that cannot be read.
type hostEntries struct {
	hosts  []HostEntry
	runs   []LastRun
	number uint64
	err    error
}

// add takes in an entry, and reports whether it could be read.
func (r *hostEntries) add(entry jetstream.KeyValueEntry, lastRuns string) bool {
	if entry.Key() == lastRuns {
		var kept keptLastRuns
		r.err = readable("last runs", entry, format.LastRuns.Decode(entry.Value(), &kept))
		r.runs, r.number = kept.Runs, entry.Revision()
		return r.err == nil
	}
	host := HostEntry{Number: entry.Revision()}
	r.err = readable("host", entry, format.Host.Decode(entry.Value(), &host.Host))
	r.hosts = append(r.hosts, host)
	return r.err == nil
}

// readable says of an entry why it cannot be read.
func readable(what string, entry jetstream.KeyValueEntry, err error) error {
	switch {
	case format.IsUnsupported(err):
		return fmt.Errorf("the stored %s %s was %w", what, entry.Key(), err)
	case err != nil:
		return fmt.Errorf("the stored %s %s is damaged: %w", what, entry.Key(), err)
	}
	return nil
}
