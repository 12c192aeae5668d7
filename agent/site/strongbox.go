package site

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/strongbox"
)

// StrongboxFolder is where the files of the strongbox of a site in dir are.
func StrongboxFolder(dir string) string { return filepath.Join(dir, "credentials") }

// strongbox opens the strongbox of the site, or says in the log why it is sealed. A site
// whose strongbox is sealed starts: its runs continue, and its hosts are heard.
func (o Options) strongbox() *strongbox.Box {
	box := strongbox.Open(strongbox.Options{Dir: StrongboxFolder(o.Dir), Credentials: o.Credentials, At: o.at("strongbox")})
	if box.Sealed() != nil && len(o.Passphrase) > 0 {
		switch err := box.Unseal(o.Passphrase); {
		case errors.Is(err, strongbox.ErrWrong):
			o.Log.Error("the passphrase that was given at the start is wrong")
		case err != nil:
			o.Log.Error("cannot unseal the site with the passphrase that was given at the start", "error", err)
		}
	}
	if err := box.Sealed(); err != nil {
		o.Log.Warn("the REST API answers 503, webhooks wait and the certificate is not renewed; runs continue", "error", err)
	}
	return box
}

// openEach is how often a sealed strongbox is tried again. Its key file may be on a disk
// that is mounted later, of which no watch of a folder tells.
const openEach = 5 * time.Second

// keepOpening opens the strongbox as soon as it can be opened, without a person: its key
// file may have been put back. It returns once it is open, or the site stops.
func (s *Site) keepOpening(running context.Context) {
	if s.box.Sealed() == nil {
		return
	}
	for s.box.Retry() != nil {
		if wait.Sleep(running, openEach) != nil {
			return
		}
	}
	s.log.Info("the strongbox is open")
}

// Secrets say what becomes of the secrets in a backup, whose strongbox may be opened by a key
// file that is in no backup.
type Secrets struct {
	// KeyFile is the path of that file.
	KeyFile string
	// Without tells that it is lost, and the secrets are given up.
	Without bool
}

// restore has the strongbox of a site that was put in dir open again.
func (s Secrets) restore(dir string) error {
	folder := StrongboxFolder(dir)
	box := strongbox.Open(strongbox.Options{Dir: folder})
	missing := box.Missing()
	switch {
	case s.Without && strongbox.Exists(folder):
		_, err := strongbox.Reset(folder, time.Now())
		return err
	case s.KeyFile != "" && missing == "":
		return errors.New("no key file is missing in this backup; leave it out")
	case s.KeyFile != "":
		key, err := strongbox.ReadKey(s.KeyFile)
		if err != nil {
			return err
		}
		if err := box.PutBack(key); errors.Is(err, strongbox.ErrWrong) {
			return fmt.Errorf("%s does not open the strongbox of the backup; that takes %s of the site", s.KeyFile, missing)
		} else if err != nil {
			return err
		}
	case missing != "" && !s.Without:
		return fmt.Errorf("the secrets in it are sealed by %s of the site, which is in no backup: give that file with --key-file, or give these secrets up with --without-secrets", missing)
	}
	return nil
}
