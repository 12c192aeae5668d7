package principal

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/argon2"
)

// ErrBusy means that more passwords are waiting to be checked than may.
var ErrBusy = errors.New("too many logins are waiting; try again")

// The cost of a hash of a password: 19 MiB and some ten milliseconds (RFC 9106; the least
// that is advised for a server).
const (
	hashMemory  = 19 * 1024 // KiB
	hashTime    = 2
	hashThreads = 1
	saltBytes   = 16
	hashBytes   = 32
)

// The bounds of a cost that is read from a file.
const maxHashMemory, maxHashTime, maxHashThreads = 256 * 1024, 16, 4

const (
	// maxWaiting are the passwords that may wait from all known sources, and again from all
	// others, maxWaitingEach those from one source: one who sends hundreds a second takes no
	// turn of others.
	maxWaiting, maxWaitingEach = 64, 4
	// maxWait is how long one waits.
	maxWait = 5 * time.Second
	// maxRest bounds how long a slot rests after a password: as long as that took, so that
	// logins take half of the time of its processor at most, and the rest of the site goes on.
	maxRest = time.Second
)

// hasher hashes passwords, a few at a time: the memory of a hash is large, and the
// processor is for the rest of the site. Its zero value is not ready; use newHasher.
type hasher struct {
	slots chan struct{}
	// next is held by the one of the unknown sources that is next in line for a slot: the others
	// queue behind it, and those of known sources do not.
	next  chan struct{}
	known Sources

	mu      sync.Mutex
	waiting map[string]int
	// total counts those that wait, of known sources and of others.
	total map[bool]int
}

func newHasher() *hasher {
	return &hasher{slots: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/4)), next: make(chan struct{}, 1), waiting: map[string]int{}, total: map[bool]int{}}
}

// hash returns a password as it is stored, in the usual form of argon2id.
func (h *hasher) hash(ctx context.Context, from, password string) (stored string, err error) {
	salt := make([]byte, saltBytes)
	if _, err := rand.Read(salt); err != nil {
		return "", fmt.Errorf("cannot hash a password: %w", err)
	}
	err = h.turn(ctx, from, func() {
		sum := argon2.IDKey([]byte(password), salt, hashTime, hashMemory, hashThreads, hashBytes)
		encode := base64.RawStdEncoding.EncodeToString
		stored = fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, hashMemory, hashTime, hashThreads, encode(salt), encode(sum))
	})
	return stored, err
}

// nobody is checked when there is no such user, so that the answer takes as long.
const nobody = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

var errDamagedHash = errors.New("the hash of the password is damaged")

// verify reports whether a password is that of a hash.
func (h *hasher) verify(ctx context.Context, from, stored, password string) (right bool, err error) {
	var version, memory, rounds, threads int
	rest, ours := strings.CutPrefix(stored, "$argon2id$")
	parts := strings.Split(rest, "$")
	if !ours || len(parts) != 4 {
		return false, errDamagedHash
	}
	if _, err := fmt.Sscanf(parts[0]+" "+parts[1], "v=%d m=%d,t=%d,p=%d", &version, &memory, &rounds, &threads); err != nil {
		return false, errDamagedHash
	}
	salt, err1 := base64.RawStdEncoding.DecodeString(parts[2])
	want, err2 := base64.RawStdEncoding.DecodeString(parts[3])
	if err1 != nil || err2 != nil || version != argon2.Version || len(want) != hashBytes || len(salt) < saltBytes ||
		memory < 8 || memory > maxHashMemory || rounds < 1 || rounds > maxHashTime || threads < 1 || threads > maxHashThreads {
		return false, errDamagedHash
	}
	err = h.turn(ctx, from, func() {
		sum := argon2.IDKey([]byte(password), salt, uint32(rounds), uint32(memory), uint8(threads), hashBytes) //nolint:gosec // bounded above
		right = subtle.ConstantTimeCompare(sum, want) == 1
	})
	return right, err
}

// turn does work when it is its turn.
func (h *hasher) turn(ctx context.Context, from string, work func()) error {
	known := h.known.Has(from)
	if !h.queue(from, known) {
		return ErrBusy
	}
	defer h.leave(from, known)
	ctx, stop := context.WithTimeout(ctx, maxWait)
	defer stop()
	if err := h.slot(ctx, known); err != nil {
		return err
	}
	begun := time.Now()
	defer func() { time.AfterFunc(min(time.Since(begun), maxRest), func() { <-h.slots }) }()
	work()
	return nil
}

// slot waits for a slot, in the order in which the sources came.
func (h *hasher) slot(ctx context.Context, known bool) error {
	if !known {
		select {
		case h.next <- struct{}{}:
			defer func() { <-h.next }()
		case <-ctx.Done():
			return ErrBusy
		}
	}
	select {
	case h.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ErrBusy
	}
}

func (h *hasher) queue(from string, known bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.total[known] >= maxWaiting || h.waiting[from] >= maxWaitingEach {
		return false
	}
	h.total[known]++
	h.waiting[from]++
	return true
}

func (h *hasher) leave(from string, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.total[known]--
	if h.waiting[from]--; h.waiting[from] == 0 {
		delete(h.waiting, from)
	}
}

// passwordBytes is the length of the random part of a password that is made.
const passwordBytes = 15

// NewPassword returns a password that nobody guesses, in groups that can be typed.
func NewPassword() (string, error) {
	random := make([]byte, passwordBytes)
	if _, err := rand.Read(random); err != nil {
		return "", fmt.Errorf("cannot make a password: %w", err)
	}
	const letters = "abcdefghjkmnpqrstuvwxyz23456789" // None is taken for another.
	groups := make([]string, 0, passwordBytes/5)
	for i := 0; i < len(random); i += 5 {
		group := ""
		for _, b := range random[i : i+5] {
			group += string(letters[int(b)%len(letters)])
		}
		groups = append(groups, group)
	}
	return strings.Join(groups, "-"), nil
}
