package message

import (
	"slices"
	"strings"
	"unicode"
)

// MaxOutput bounds the output of one action of a host that is kept, in bytes.
const MaxOutput = 64 << 10

// OutputActions are the actions of a host whose output is kept, in their order.
func OutputActions() []string { return []string{"prepare", "upgrade", "resume", "verify", "rollback"} }

// IsOutputAction reports whether the output of an action is kept.
func IsOutputAction(action string) bool { return slices.Contains(OutputActions(), action) }

// Output is the end of what an action of a host has printed.
type Output struct {
	Run    uint64
	Action string
	// Text is at most MaxOutput bytes; Cut tells that there was more before them.
	Text []byte
	Cut  bool
}

// CleanOutput makes output fit to be kept and shown on a terminal: valid UTF-8, with
// no control characters but line ends and tabs. It has at most MaxOutput bytes: the
// last ones.
func CleanOutput(printed []byte) []byte {
	s := strings.ToValidUTF8(strings.ReplaceAll(string(printed), "\r\n", "\n"), "�")
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case r == '\r': // A progress bar writes its line again and again.
			return '\n'
		case unicode.IsControl(r), unicode.In(r, unicode.Cf):
			return -1
		}
		return r
	}, s)
	if over := len(s) - MaxOutput; over > 0 {
		s = strings.ToValidUTF8(s[over:], "")
	}
	return []byte(s)
}
