package format

import "fmt"

// Protocol is the newest protocol between site and worker that this version
// speaks. It speaks the one before, too. The rule is that of stored things: what
// the other side would have to understand raises the number.
const Protocol = 1

// StepProtocol is the protocol from which on a worker runs steps.
const StepProtocol = 1

// Agree returns the protocol in which this side speaks to another one, of which
// it knows the newest protocol: the newest that both speak.
func Agree(other int) (int, error) { return agree(Protocol, other) }

func agree(own, other int) (int, error) {
	if other < 1 {
		return 0, fmt.Errorf("the other side tells no protocol, this version speaks %s", numbers(own))
	}
	common := min(own, other)
	if max(own, other)-common > 1 {
		return 0, fmt.Errorf("the other side speaks protocol %s, this version speaks %s", numbers(other), numbers(own))
	}
	return common, nil
}
