package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/minio/highwayhash"
)

// The form of a record in a block of a stream (nats-server, filestore.go,
// writeMsgRecordLocked): a header of its length, sequence, time and the length
// of its subject, then the subject, headers, body and a checksum.
const (
	recordHead  = 22
	recordSum   = 8
	headersFlag = 1 << 31
	// sequenceFlags mark a sequence as one of a record that was removed.
	sequenceFlags = 3 << 62
)

// errTorn is the error of a last record that is not whole. The server was writing
// it when the machine went down, so nobody was told of it.
var errTorn = errors.New("its last record is not whole")

// checkStream checks one stream and returns its last sequence.
func (k *Known) checkStream(dir string, whole bool) (last uint64, err error) {
	blocks, err := blocks(dir)
	if err != nil {
		return 0, err
	}
	if err := checkSettings(dir); err != nil {
		if errors.Is(err, os.ErrNotExist) && emptyBlocks(dir, blocks) {
			return 0, nil // An orphan stream.
		}
		return 0, err
	}
	for i, number := range blocks {
		path := blockPath(dir, number)
		block, err := k.file(path, false)
		if err != nil {
			return 0, fmt.Errorf("cannot check the store: %w", err)
		}
		if torn := errors.Is(block.damage, errTorn); block.damage != nil && (whole || i < len(blocks)-1 || !torn) {
			return 0, &Damage{What: path, cause: block.damage}
		}
		last = max(last, block.ends)
	}
	return last, nil
}

// blocks returns the numbers of a stream's blocks in their order.
func blocks(dir string) (numbers []int, err error) {
	files, err := os.ReadDir(filepath.Join(dir, "msgs"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for _, file := range files {
		if number, isBlock := blockNumber(file.Name()); isBlock {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	return numbers, err
}

// blockNumber returns the number of a block, by the name of its file.
func blockNumber(name string) (number int, isBlock bool) {
	digits, isBlock := strings.CutSuffix(name, ".blk")
	number, err := strconv.Atoi(digits)
	return number, isBlock && err == nil
}

func emptyBlocks(dir string, numbers []int) bool {
	return !slices.ContainsFunc(numbers, func(number int) bool {
		info, err := os.Stat(blockPath(dir, number))
		return err != nil || info.Size() > 0
	})
}

func blockPath(dir string, number int) string {
	return filepath.Join(dir, "msgs", strconv.Itoa(number)+".blk")
}

func blockHash(stream string, number int) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%s-%d", stream, number))
}

// checkSettings checks a stream's settings against their checksum.
func checkSettings(dir string) error {
	settings, err := os.ReadFile(filepath.Join(dir, "meta.inf"))
	if err != nil {
		return &Damage{What: "the settings of the stream " + dir, cause: err}
	}
	sum, err := os.ReadFile(filepath.Join(dir, "meta.sum"))
	if err != nil {
		return &Damage{What: "the settings of the stream " + dir, cause: err}
	}
	key := sha256.Sum256([]byte(filepath.Base(dir)))
	want, err := checksum(key, settings)
	if err != nil {
		return err
	}
	if hex.EncodeToString(want) != string(sum) {
		return &Damage{What: fmt.Sprintf("the settings of the stream %s do not have the checksum that is kept with them", dir)}
	}
	return nil
}

func checksum(key [sha256.Size]byte, parts ...[]byte) ([]byte, error) {
	hash, err := highwayhash.NewDigest64(key[:])
	if err != nil {
		return nil, err
	}
	for _, part := range parts {
		_, _ = hash.Write(part)
	}
	return hash.Sum(nil), nil
}

// checkBlock checks each record of a block against its checksum, and returns
// the last sequence.
func checkBlock(block []byte, key [sha256.Size]byte) (last uint64, err error) {
	hash, err := highwayhash.NewDigest64(key[:])
	if err != nil {
		return 0, err
	}
	var sum [recordSum]byte
	for at := 0; at < len(block); {
		length, covered := recordAt(block[at:])
		if covered == nil {
			return last, broken(block, at, 0)
		}
		hash.Reset()
		for _, part := range covered {
			_, _ = hash.Write(part)
		}
		if !bytes.Equal(hash.Sum(sum[:0]), block[at+length-recordSum:at+length]) {
			return last, broken(block, at, length)
		}
		last = max(last, binary.LittleEndian.Uint64(block[at+4:])&^sequenceFlags)
		at += length
	}
	return last, nil
}

// recordAt returns the length of the record with which a block begins, and
// what its checksum covers; nothing when it is not whole.
func recordAt(block []byte) (length int, covered [][]byte) {
	if len(block) < recordHead {
		return 0, nil
	}
	first := binary.LittleEndian.Uint32(block)
	length = int(first &^ headersFlag)
	subject := int(binary.LittleEndian.Uint16(block[20:]))
	rest := recordHead + subject
	if first&headersFlag != 0 {
		rest += 4
	}
	if length > len(block) || rest+recordSum > length {
		return 0, nil
	}
	return length, [][]byte{block[4:20], block[recordHead : recordHead+subject], block[rest : length-recordSum]}
}

// broken tells a record that was being written from one that was changed: the
// first is the last of its block. length is 0 when it is not known.
func broken(block []byte, at, length int) error {
	rest := block[at:]
	zeros := len(bytes.Trim(rest, "\x00")) == 0
	if length == len(rest) || length == 0 && (zeros || beyond(rest)) {
		return fmt.Errorf("%w (at byte %d of %d)", errTorn, at, len(block))
	}
	return fmt.Errorf("the record at byte %d of %d was changed", at, len(block))
}

// beyond reports whether a record says that it is longer than what is there,
// or has no head to say so.
func beyond(rest []byte) bool {
	return len(rest) < recordHead || int(binary.LittleEndian.Uint32(rest)&^headersFlag) > len(rest)
}
