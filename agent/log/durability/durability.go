// Package durability defines how all streams and buckets are kept: the number of
// replicas, their placement, and when a write counts as on disk. Each stream relies on
// what the others have stored, so there is one value for all.
//
// It decides nothing else and does no I/O.
package durability

import "github.com/nats-io/nats.go/jetstream"

const (
	// Replicas is how many servers keep each stream and bucket.
	Replicas = 1
	// SyncAlways tells that a server acknowledges a write only once it is on disk.
	SyncAlways = true
)

// tags are what the servers are tagged with that may keep streams and buckets;
// none means any server.
var tags []string

func placement() *jetstream.Placement {
	if len(tags) == 0 {
		return nil
	}
	return &jetstream.Placement{Tags: tags}
}

// Stream returns the configuration of a stream that is kept so.
func Stream(c jetstream.StreamConfig) jetstream.StreamConfig {
	c.Storage, c.Replicas, c.Placement = jetstream.FileStorage, Replicas, placement()
	return c
}

// Bucket returns the configuration of a bucket that is kept so.
func Bucket(c jetstream.KeyValueConfig) jetstream.KeyValueConfig {
	c.Storage, c.Replicas, c.Placement = jetstream.FileStorage, Replicas, placement()
	return c
}
