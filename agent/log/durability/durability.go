// Package durability defines how all streams and buckets are kept: the number of
// replicas, their placement, and when a write counts as on disk. Each stream relies on
// the data of the others, so all have the same settings.
//
// It also gives each stream its identity, and decides nothing else.
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

// Stream returns the configuration of a stream with these settings.
func Stream(c jetstream.StreamConfig) jetstream.StreamConfig {
	c.Storage, c.Replicas, c.Placement = jetstream.FileStorage, Replicas, placement()
	return c
}

// Bucket returns the configuration of a bucket with these settings.
func Bucket(c jetstream.KeyValueConfig) jetstream.KeyValueConfig {
	c.Storage, c.Replicas, c.Placement = jetstream.FileStorage, Replicas, placement()
	return c
}
