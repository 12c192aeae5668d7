package strongbox

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
)

// Target is a way to keep the wrapping key.
type Target struct {
	Way Way
	// File is the path of the key file. Empty means one of the strongbox's own, in its folder.
	File string
	// Name is that of the credential.
	Name string
	// Secret is the passphrase, or the content of the credential or of the key file. A key
	// file that is not there is made.
	Secret []byte
}

// MinPassphrase is the least length of a passphrase, in bytes.
const MinPassphrase = 12

// Check returns why a target cannot be.
func (t Target) Check() error {
	switch t.Way {
	case KeyFile:
		if t.File != "" && !filepath.IsAbs(t.File) {
			return fmt.Errorf("the key file %q is no absolute path", t.File)
		}
		return nil
	case Credential:
		if !ValidCredential(t.Name) {
			return fmt.Errorf("%.80q cannot be the name of a credential; use a file name without a folder", t.Name)
		}
		return CheckKey("the credential", t.Secret)
	case Passphrase:
		if len(t.Secret) < MinPassphrase {
			return fmt.Errorf("the passphrase is too short; use at least %d characters, such as five words", MinPassphrase)
		}
		return nil
	}
	return fmt.Errorf("way %q is not known", t.Way)
}

// errChanging is why the file of a sealed strongbox is not changed.
var errChanging = errors.New("open it first")

// Rewrap changes where the wrapping key comes from. A process that is killed in it leaves a
// strongbox that the old secret or the new one opens, and no secret is lost.
func (b *Box) Rewrap(to Target) error {
	if err := to.Check(); err != nil {
		return err
	}
	if to.Way == KeyFile && to.File != "" {
		// One that is there may be what opens it now, or be left by a killed process.
		secret, err := ReadKey(to.File)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		to.Secret = secret
	}
	return b.change(to, func(keys ring) (ring, error) {
		if len(keys.Keys) == 0 {
			return keys.with()
		}
		return keys, nil
	})
}

// Rotate makes a new data key, which seals everything from now on. secret is that which
// opens the strongbox; nil if that is there without a person.
func (b *Box) Rotate(secret []byte) error {
	kept, err := b.read()
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("nothing was sealed yet, so there is no key to replace")
	}
	if err != nil {
		return err
	}
	if secret == nil {
		if secret, err = b.secretOf(kept); err != nil {
			return err
		}
	}
	return b.change(Target{Way: kept.Way, File: kept.File, Name: kept.Name, Secret: secret}, ring.with)
}

// change writes the file anew, with what becomes of the keys.
func (b *Box) change(to Target, keysOf func(ring) (ring, error)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed() != nil {
		return errChanging
	}
	keys, err := keysOf(b.keys)
	if err != nil {
		return err
	}
	if err := b.keep(keys, to); err != nil {
		return fmt.Errorf("cannot change the strongbox: %w", err)
	}
	b.keys = keys
	return nil
}

// keep writes the keys in a way: first the key file, then the file of the strongbox, which
// makes it count. At last it removes key files that open nothing any more. One that it makes
// elsewhere is found by a link with the name of one of its own, which is there before it.
func (b *Box) keep(keys ring, to Target) error {
	if err := os.MkdirAll(b.o.Dir, 0o700); err != nil {
		return err
	}
	next := content{Way: to.Way, File: to.File, Name: to.Name}
	secret, err := next.prepare(to, b.o.Hash)
	if err != nil {
		return err
	}
	w, err := next.wrapping(secret)
	if err != nil {
		return err
	}
	next.ID = w.id
	own := ownKey(w.id)
	if to.Way == KeyFile && to.File == "" {
		next.File = own
	}
	if next.Keys, err = wrap(keys, w); err != nil {
		return err
	}
	body, err := format.Strongbox.Encode(next)
	if err != nil {
		return err
	}
	if to.Way == KeyFile && len(to.Secret) == 0 {
		if next.File != own {
			if err := b.do("key link", func() error { return b.link(own, next.File) }); err != nil {
				return err
			}
		}
		if err := b.do("key file", func() error { return durable.WriteFile(next.keyPath(b.o.Dir), secret, 0o600) }); err != nil {
			return err
		}
	}
	if err := b.do("strongbox", func() error { return durable.WriteFile(b.file(), body, 0o600) }); err != nil {
		return err
	}
	return b.do("old keys", func() error { return b.removeOld(next) })
}

// prepare returns the secret, and sets how it becomes a key.
func (s *content) prepare(to Target, cost Hash) ([]byte, error) {
	if to.Way == Passphrase {
		s.Hash = &Hash{Salt: make([]byte, saltBytes), Memory: cost.Memory, Time: cost.Time, Threads: cost.Threads}
		_, err := rand.Read(s.Hash.Salt)
		return to.Secret, err
	}
	if len(to.Secret) > 0 {
		return to.Secret, nil
	}
	secret := make([]byte, keyBytes)
	_, err := rand.Read(secret)
	return secret, err
}

func wrap(keys ring, w wrappingKey) ([]byte, error) {
	text, err := json.Marshal(keys)
	if err != nil {
		return nil, err
	}
	return seal(w.key, text, purpose)
}

func (b *Box) do(label string, do func() error) error {
	b.o.At("before " + label)
	if err := do(); err != nil {
		return err
	}
	b.o.At("after " + label)
	return nil
}

func (b *Box) link(name, path string) error {
	if err := os.Symlink(path, filepath.Join(b.o.Dir, name)); err != nil {
		return err
	}
	return durable.SyncFolder(b.o.Dir)
}

// removeOld removes the key files of its own that open nothing any more, also those that a
// killed process has left.
func (b *Box) removeOld(kept content) error {
	files, err := os.ReadDir(b.o.Dir)
	if err != nil {
		return err
	}
	for _, file := range files {
		path := filepath.Join(b.o.Dir, file.Name())
		if !isOwnKey(file.Name()) || b.inUse(kept, path) {
			continue
		}
		away, err := b.removeLinked(kept, path)
		if err == nil && !away {
			err = removeIgnoring(path)
		}
		if err != nil {
			return err
		}
	}
	return durable.SyncFolder(b.o.Dir)
}

// inUse reports whether a file is the key file that opens the strongbox, whatever path that has.
func (b *Box) inUse(kept content, path string) bool {
	if kept.Way != KeyFile {
		return false
	}
	used, err := os.Stat(kept.keyPath(b.o.Dir))
	if err != nil {
		return path == kept.keyPath(b.o.Dir)
	}
	file, err := os.Lstat(path)
	return err == nil && os.SameFile(used, file)
}

// removeLinked removes the key file elsewhere to which a link of keep leads, if it opens
// nothing and is still the one that was made. away tells that the folder of that file is not
// there, such as one on a disk that is not mounted: the link is needed later.
func (b *Box) removeLinked(kept content, link string) (away bool, err error) {
	path, err := os.Readlink(link)
	if err != nil || b.inUse(kept, path) {
		return false, nil //nolint:nilerr // it is no link
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return true, nil //nolint:nilerr // as said above
	}
	secret, err := ReadKey(path)
	if err != nil {
		return false, nil //nolint:nilerr // it was not made yet, or is another one
	}
	made, err := content{Way: KeyFile}.wrapping(secret)
	if err != nil || ownKey(made.id) != filepath.Base(link) {
		return false, err
	}
	return false, errors.Join(os.Remove(path), durable.SyncFolder(filepath.Dir(path)))
}

// Reset gives up what a strongbox seals: the next secret makes a new one. Its files are put
// aside, and are not removed.
func Reset(dir string, now time.Time) (aside []string, err error) {
	suffix := ".lost-" + now.UTC().Format("20060102T150405Z")
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if name := file.Name(); name == FileName || isOwnKey(name) {
			from := filepath.Join(dir, name)
			if err := os.Rename(from, from+suffix); err != nil {
				return aside, err
			}
			aside = append(aside, from+suffix)
		}
	}
	if len(aside) == 0 {
		return nil, fmt.Errorf("%s has no strongbox", dir)
	}
	return aside, durable.SyncFolder(dir)
}
