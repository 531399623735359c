// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"parley.dev/parley/internal/chat/fence"
)

// uidPattern is what a chat's UID may look like. It goes into file names.
var uidPattern = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// markers records in a directory who opened which episode: one file with the incarnation for each episode. They survive
// a crash of the relay's container, but not the pod, and neither does the generator.
type markers struct{ dir string }

func (m markers) path(ep fence.Fence) string {
	return filepath.Join(m.dir, fmt.Sprintf("%s-%d-%d", ep.ChatUID, ep.HistoryVersion, ep.Attempt))
}

// create records who opened an episode. The marker of an evicted episode of that name means that the attempt was made,
// so that it fails with ErrExists.
func (m markers) create(ep fence.Fence, incarnation string) error {
	if m.dir == "" {
		return nil
	}
	f, err := os.OpenFile(m.path(ep), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
	if errors.Is(err, fs.ErrExist) {
		return ErrExists
	}
	if err != nil {
		return fmt.Errorf("creating the marker of episode %s: %w", ep, err)
	}
	_, err = f.WriteString(incarnation)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("writing the marker of episode %s: %w", ep, err)
	}
	return nil
}

func (m markers) remove(ep fence.Fence) error {
	if m.dir == "" {
		return nil
	}
	if err := os.Remove(m.path(ep)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the marker: %w", err)
	}
	return nil
}

// load reads the markers of an earlier life. Other files are ignored.
func (m markers) load() (map[fence.Fence]string, error) {
	if m.dir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(m.dir, 0o770); err != nil {
		return nil, fmt.Errorf("making the directory of the markers: %w", err)
	}
	entries, err := os.ReadDir(m.dir)
	if err != nil {
		return nil, fmt.Errorf("reading the directory of the markers: %w", err)
	}
	found := map[fence.Fence]string{}
	for _, entry := range entries {
		ep, ok := parseMarker(entry.Name())
		if !ok || !entry.Type().IsRegular() {
			continue
		}
		incarnation, err := os.ReadFile(filepath.Join(m.dir, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading the marker of episode %s: %w", ep, err)
		}
		found[ep] = string(incarnation)
	}
	return found, nil
}

// parseMarker reads "<uid>-<version>-<attempt>", from the end because a UID has dashes of its own.
func parseMarker(name string) (fence.Fence, bool) {
	rest, attempt, _ := strings.CutLast(name, "-")
	uid, version, _ := strings.CutLast(rest, "-")
	ep, err := parseFence(uid, version, attempt)
	return ep, err == nil
}

func parseFence(uid, version, attempt string) (fence.Fence, error) {
	if !uidPattern.MatchString(uid) {
		return fence.Fence{}, errors.New("the chat's UID must be 1 to 64 letters, digits and dashes")
	}
	v, err := strconv.ParseUint(version, 10, 63)
	if err != nil {
		return fence.Fence{}, fmt.Errorf("history version: %w", err)
	}
	a, err := strconv.ParseUint(attempt, 10, 31)
	if err != nil {
		return fence.Fence{}, fmt.Errorf("attempt: %w", err)
	}
	return fence.Fence{ChatUID: uid, HistoryVersion: int64(v), Attempt: int32(a)}, nil
}
