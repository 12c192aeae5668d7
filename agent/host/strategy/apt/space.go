package apt

import (
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/hostfs"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// archive is what the lists say about one version of a package.
type archive struct {
	// size is that of the download, unpacked what its files take, in bytes.
	size, unpacked int64
	// sum is its SHA-256; empty when the lists have none.
	sum string
}

// sizeBits bounds a size that apt prints, to 8 TiB: a repository may lie, and the sum of all
// must not overflow.
const sizeBits = 44

// parseRecords reads the output of apt-cache show: the archives by "name=version".
func parseRecords(printed, native string) map[string]archive {
	all := map[string]archive{}
	for record := range strings.SplitSeq(printed, "\n\n") {
		fields := map[string]string{}
		for line := range strings.Lines(record) {
			name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ": ")
			if _, twice := fields[name]; ok && !twice && !strings.HasPrefix(line, " ") {
				fields[name] = value
			}
		}
		if fields["Package"] == "" || fields["Version"] == "" {
			continue
		}
		size, _ := strconv.ParseInt(fields["Size"], 10, sizeBits)
		kibibytes, _ := strconv.ParseInt(fields["Installed-Size"], 10, 40)
		key := packageName(fields["Package"], fields["Architecture"], native) + "=" + fields["Version"]
		// A flat repository need not tell what files take; an archive is smaller than that.
		all[key] = archive{size: max(size, 0), unpacked: max(kibibytes<<10, size), sum: strings.ToLower(fields["SHA256"])}
	}
	return all
}

// uri is an archive that apt has to fetch.
type uri struct {
	// file is where it is on this host, for a file: source.
	file string
	// name is that of the archive after it is fetched.
	name string
	size int64
}

// parseURIs reads what is to be fetched, by apt-get --print-uris: each line has an
// address in quotes, in which a blank is no end, the name of the file and its size.
func parseURIs(printed string) (all []uri) {
	for line := range strings.Lines(printed) {
		end := strings.LastIndex(line, "' ")
		if end < 1 || line[0] != '\'' {
			continue
		}
		fields := strings.Fields(line[end+2:])
		if len(fields) < 2 {
			continue
		}
		size, _ := strconv.ParseInt(fields[1], 10, sizeBits)
		one := uri{name: filepath.Base(fields[0]), size: max(size, 0)}
		if at, ok := strings.CutPrefix(line[1:end], "file:"); ok {
			if file, err := url.PathUnescape(at); err == nil {
				one.file = filepath.Clean("/" + strings.TrimLeft(file, "/"))
			}
		}
		all = append(all, one)
	}
	return all
}

const (
	archivesFolder = "/var/cache/apt/archives"
	// spare is kept free for databases, logs and what scripts write.
	spare = 32 << 20
	// bootRoom is what one more kernel takes in /boot at least, with its initrd.
	bootRoom = 64 << 20
)

// needs returns the room that a plan takes: for the download, for what the new
// versions take more than the old ones, for one package whose old and new files are
// there at once (the largest), and in /boot for each new kernel.
func needs(changes []message.Change, download int64, archives map[string]archive, now packages) []hostfs.Need {
	more, largest, kernels := int64(0), int64(0), int64(0)
	for _, c := range changes {
		unpacked := archives[c.Name+"="+c.To].unpacked
		more += unpacked - now[c.Name].size
		largest = max(largest, unpacked)
		if c.From == "" && isKernel(c.Name) {
			kernels++
		}
	}
	if len(changes) == 0 {
		return nil
	}
	list := []hostfs.Need{{Folder: archivesFolder, Bytes: download}, {Folder: "/usr", Bytes: max(more, 0) + largest + spare}}
	if kernels > 0 {
		list = append(list, hostfs.Need{Folder: "/boot", Bytes: kernels * bootRoom})
	}
	return list
}

// isKernel reports whether a package is the image of one kernel, such as
// linux-image-6.1.0-31-amd64, and not the one that depends on the newest.
func isKernel(name string) bool {
	rest, ok := strings.CutPrefix(name, "linux-image-")
	rest = strings.TrimPrefix(rest, "unsigned-")
	return ok && rest != "" && '0' <= rest[0] && rest[0] <= '9' && !strings.HasSuffix(rest, "-dbg")
}
