// Package durability defines how all streams and buckets are kept: the number of
// replicas, their placement, and when a write counts as on disk. Each stream relies on
// the data of the others, so all have the same settings.
//
// It also opens them, and gives each stream its identity. It decides nothing else.
package durability

import "github.com/nats-io/nats.go/jetstream"

const (
	// Replicas is how many servers keep each stream and bucket.
	Replicas = 1
	// SyncAlways means that a server acknowledges a write only once it is on disk.
	SyncAlways = true
)

// tags are the tags of the servers that may keep streams and buckets; without tags
// every server may.
var tags []string

func placement() *jetstream.Placement {
	if len(tags) == 0 {
		return nil
	}
	return &jetstream.Placement{Tags: tags}
}
