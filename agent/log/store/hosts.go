package store

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Host is what is known of a host between two starts of the agent.
type Host struct {
	Tenant       string `json:"tenant"`
	Name         string `json:"name"`
	Application  string `json:"application"`
	AgentVersion string `json:"agent-version,omitempty"`
	Protocol     int    `json:"protocol,omitempty"`
	// Role and Labels are what a rollout chooses the host by.
	Role   string            `json:"role,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	// LastRun is the last ended run that the host was a member of, MissedSince when
	// the first run ended that should have upgraded it and did not.
	LastRun     v1.HostRun `json:"last-run,omitzero"`
	MissedSince time.Time  `json:"missed-since,omitzero"`
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
	var unreadable error
	err = watch(ctx, s.hosts, tenant+".*", func(entry jetstream.KeyValueEntry) bool {
		if entry == nil { // The end of the initial values.
			return false
		}
		var host Host
		switch err := format.Host.Decode(entry.Value(), &host); {
		case format.IsUnsupported(err):
			unreadable = fmt.Errorf("the stored host %s was %w", entry.Key(), err)
		case err != nil:
			unreadable = fmt.Errorf("the stored host %s is damaged: %w", entry.Key(), err)
		}
		hosts = append(hosts, host)
		return unreadable == nil
	}, jetstream.IgnoreDeletes())
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read the hosts of tenant %s: %w", tenant, err)
	case unreadable != nil:
		return nil, unreadable
	}
	return hosts, nil
}
