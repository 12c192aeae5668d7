package site

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/audit"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/strongbox"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
)

// A backup is a tar file with the folder of a site in it: its streams, each as JetStream
// has it at one instant, the keys and tokens that it lets in, and its audit logs. The last entry is the
// list of all others with their sums, so that a copy that was cut short is found out.

// listName is the last entry of a backup.
const listName = "backup.json"

// list is the content of that entry.
type list struct {
	// At is when the backup was made.
	At time.Time `json:"at"`
	// Files are the SHA-256 sums of the other entries, by name.
	Files map[string]string `json:"files"`
}

// packer writes a backup.
type packer struct {
	tar *tar.Writer
	list
}

// pack writes a backup of the site in dir, whose server is connected on nc.
func pack(ctx context.Context, nc *nats.Conn, logs *audit.Logs, dir string, to io.Writer) error {
	p := &packer{tar: tar.NewWriter(to), list: list{At: time.Now().UTC(), Files: map[string]string{}}}
	streams, err := streamNames(ctx, nc)
	if err != nil {
		return err
	}
	for _, stream := range streams {
		if err := p.addStream(ctx, nc, stream); err != nil {
			return fmt.Errorf("cannot copy stream %s: %w", stream, err)
		}
	}
	// A join token or a secret-id of a copy would let somebody in who was let in before: it is
	// made anew.
	for _, folder := range []string{hostsKind, tokensKind, usersKind, approlesKind, policiesKind, tenantsKind, "tls"} {
		if err := p.addFolder(dir, folder); err != nil {
			return fmt.Errorf("cannot copy %s: %w", folder, err)
		}
	}
	// After all that it seals: it has each key that was in use. A key file is in no backup.
	if err := p.addFolder(dir, filepath.Join("credentials", strongbox.FileName)); err != nil {
		return fmt.Errorf("cannot copy the strongbox: %w", err)
	}
	// The audit logs come last: they have a record of all that is in the backup.
	if err := p.addAudit(logs, dir); err != nil {
		return fmt.Errorf("cannot copy the audit logs: %w", err)
	}
	body, err := format.Backup.Encode(p.list)
	if err != nil {
		return err
	}
	return errors.Join(p.write(listName, body), p.tar.Close())
}

// streamNames returns the names of all streams, the logs first: a run that is trimmed
// from its log meanwhile is in the history by then.
func streamNames(ctx context.Context, nc *nats.Conn) (all []string, err error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	names := js.StreamNames(ctx)
	for name := range names.Name() {
		all = append(all, name)
	}
	isLog := func(name string) bool {
		matched, _ := filepath.Match(log.Subjects{Tenant: "*"}.Stream(), name)
		return matched
	}
	sort.Slice(all, func(i, j int) bool {
		if a, b := isLog(all[i]), isLog(all[j]); a != b {
			return a
		}
		return all[i] < all[j]
	})
	return all, names.Err()
}

// streamsFolder has a folder for each stream: settingsName is what the server says of the
// stream, the other files are the pieces of its snapshot, in the order of their names.
const (
	streamsFolder = "streams"
	settingsName  = "settings.json"
)

// pieceSize is the most that is held in memory of a snapshot, in bytes.
const pieceSize = 8 << 20

// addStream adds a snapshot of a stream.
func (p *packer) addStream(ctx context.Context, nc *nats.Conn, stream string) error {
	settings, chunks, err := snapshot(ctx, nc, stream)
	if err != nil {
		return err
	}
	defer func() { _ = chunks.Close() }()
	if err := p.add(filepath.Join(streamsFolder, stream, settingsName), settings); err != nil {
		return err
	}
	piece := make([]byte, pieceSize)
	for i := 1; ; i++ {
		n, err := io.ReadFull(chunks, piece)
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return err
		}
		err = nil
		if n > 0 {
			err = p.add(filepath.Join(streamsFolder, stream, fmt.Sprintf("%06d", i)), piece[:n])
		}
		if last || err != nil {
			return err
		}
	}
}

// addFolder adds the regular files of a folder of the site.
func (p *packer) addFolder(dir, name string) error {
	err := filepath.WalkDir(filepath.Join(dir, name), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		body, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // It was removed, or was a temporary file.
		}
		relative, pathErr := filepath.Rel(dir, path)
		if err = errors.Join(err, pathErr); err != nil {
			return err
		}
		return p.add(relative, body)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// addAudit adds the audit logs, as they are at one instant.
func (p *packer) addAudit(logs *audit.Logs, dir string) error {
	release, err := logs.Hold()
	if err != nil {
		return err
	}
	defer release()
	return p.addFolder(dir, auditFolder)
}

func (p *packer) add(name string, body []byte) error {
	sum := sha256.Sum256(body)
	p.Files[filepath.ToSlash(name)] = hex.EncodeToString(sum[:])
	return p.write(filepath.ToSlash(name), body)
}

func (p *packer) write(name string, body []byte) error {
	head := &tar.Header{Name: name, Mode: 0o600, Size: int64(len(body)), ModTime: p.At, Format: tar.FormatPAX}
	if err := p.tar.WriteHeader(head); err != nil {
		return err
	}
	_, err := p.tar.Write(body)
	return err
}

// unpack reads a backup into a folder, and checks that it is whole.
func unpack(from io.Reader, dir string) error {
	files, got := tar.NewReader(from), map[string]string{}
	for {
		head, err := files.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("it is cut short: it has no %s", listName)
		}
		if err != nil {
			return fmt.Errorf("it cannot be read: %w", err)
		}
		if err := checkEntry(head); err != nil {
			return err
		}
		body, err := io.ReadAll(files)
		if err != nil {
			return fmt.Errorf("it is cut short in %s: %w", head.Name, err)
		}
		if head.Name == listName {
			return checkList(body, got)
		}
		sum := sha256.Sum256(body)
		got[head.Name] = hex.EncodeToString(sum[:])
		path := filepath.Join(dir, filepath.FromSlash(head.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := writeSynced(path, body); err != nil {
			return err
		}
	}
}

// maxEntry is the most bytes that a file in a backup has, which is held in memory. The largest
// are the pieces of a stream, and the list: it has a line of some 120 bytes for each file.
const maxEntry = 256 << 20

// checkEntry returns why an entry is none of a backup, before it is read. A sparse one takes a
// few bytes in the backup, and claims to have any number.
func checkEntry(head *tar.Header) error {
	sparse := false
	for name := range head.PAXRecords {
		sparse = sparse || strings.HasPrefix(name, "GNU.sparse.")
	}
	switch {
	case sparse || !filepath.IsLocal(head.Name) || head.Typeflag != tar.TypeReg:
		return fmt.Errorf("%q is no file of a backup", head.Name)
	case head.Size > maxEntry:
		return fmt.Errorf("%q has %d bytes; a file of a backup has at most %d", head.Name, head.Size, maxEntry)
	}
	return nil
}

func writeSynced(path string, body []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(body)
	return errors.Join(err, file.Sync(), file.Close())
}

// checkList compares the files of a backup with its list.
func checkList(body []byte, got map[string]string) error {
	var want list
	switch err := format.Backup.Decode(body, &want); {
	case format.IsUnsupported(err):
		return fmt.Errorf("it was %w; use a version that reads it", err)
	case err != nil:
		return fmt.Errorf("its %s is damaged: %w", listName, err)
	}
	for name, sum := range want.Files {
		if got[name] != sum {
			return fmt.Errorf("%s is not as it was when the backup was made", name)
		}
	}
	if len(got) != len(want.Files) {
		return fmt.Errorf("it has %d files, and its list has %d", len(got), len(want.Files))
	}
	return nil
}
