package jetstream

import (
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// connectTimeout is how long a host waits until it is let in. It is longer
	// than the site gives it: whoever gives up early has the site begin again with
	// a handshake that it had almost done, and ten thousand of them keep it from
	// ever finishing one.
	connectTimeout = 20 * time.Second
	// reconnectWait is the least time between two attempts to connect, and
	// reconnectJitter by how much the first may be longer, so that the hosts of a
	// site that comes back do not all come at once. It doubles with each attempt
	// that fails, reconnectDoubled times at most.
	reconnectWait    = time.Second
	reconnectJitter  = 2 * time.Second
	reconnectDoubled = 4
)

// Patience are the options with which a host connects, again and again.
func Patience() []nats.Option {
	return []nats.Option{nats.MaxReconnects(-1), nats.Timeout(connectTimeout), nats.CustomReconnectDelay(ReconnectDelay)}
}

// ReconnectDelay is how long a host waits before the given attempt to connect,
// the first being 1.
func ReconnectDelay(attempt int) time.Duration {
	return reconnectWait + rand.N(reconnectJitter<<min(max(0, attempt-1), reconnectDoubled))
}
