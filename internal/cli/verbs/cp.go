// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"parley.dev/parley/client"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/cli/terminal"
)

// maxCopied is the most bytes of a file that a workspace takes.
const maxCopied = 16 << 20

// inWorkspace matches CHAT:PATH. A drive of Windows has an upper-case letter.
var inWorkspace = regexp.MustCompile(`^((?:[a-z0-9.]+/)?[a-z0-9][a-z0-9.-]*):(.*)$`)

func newCp(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cp CHAT:PATH LOCAL | LOCAL CHAT:PATH",
		Short: "Copy files from the workspace of a chat, or to it",
		Long: "Copies a file, or a directory with what is in it. A PATH is relative to the directory of the workspace. If " +
			"the target is a directory here, or ends in a slash there, the copy has the name of the source in it. LOCAL - is " +
			"standard output, for a file. Links are left out, and on the way to the workspace also empty directories and " +
			"files of more than 16 MiB. The workspace must be running. Needs get on workspaces/files (ClusterRole " +
			"parley-chat-user), or update on the way to the workspace (ClusterRole parley-chat-admin).",
		Example: "  kubectl chat cp triage:report.md .\n  kubectl chat cp testdata/ triage:app/testdata",
		Args:    cobra.ExactArgs(2),
		RunE: asCaller(o, func(ctx context.Context, s *session, args []string) error {
			from, to := inWorkspace.FindStringSubmatch(args[0]), inWorkspace.FindStringSubmatch(args[1])
			if (from == nil) == (to == nil) {
				return usageError{errors.New("one of source and target must be CHAT:PATH, and the other a path here, " +
					"such as ./a:b for a name with a colon")}
			}
			chat, err := plainName("chat", append(from, to...)[1])
			if err != nil {
				return err
			}
			return onGateway(ctx, s, func(n client.Namespace) error {
				c := copying{s: s, namespace: n, chat: chat}
				if from != nil {
					return c.fromWorkspace(ctx, from[2], args[1])
				}
				return c.toWorkspace(ctx, args[0], to[2])
			})
		}),
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion,
		cobra.ShellCompDirective) {
		names, _ := findNames(cmd.Context(), o, chatsWithColon, nil, typed)
		return names, cobra.ShellCompDirectiveNoSpace // The shell completes files if there is no such chat.
	}
	return cmd
}

func chatsWithColon(ctx context.Context, s *session, args []string, found func(name, description string)) error {
	return allChats(ctx, s, args, func(name, description string) { found(name+":", description) })
}

// copying copies files, and counts those that it could not copy.
type copying struct {
	s         *session
	namespace client.Namespace
	chat      string
	failed    int
	// last is the file of the last entry, if it was written here.
	last pending
}

// pending is a file that takes its name when the next entry of the archive does not say that its content is wrong.
type pending struct{ name, temporary string }

// leaveOut reports a file that is not copied.
func (c *copying) leaveOut(name, why string) {
	fmt.Fprintf(c.s.ErrOut, "Not copied: %s: %s\n", terminal.EscapeLine(name), terminal.EscapeLine(why))
}

// fail reports a file that could not be copied. The others are copied.
func (c *copying) fail(name string, err error) {
	c.failed++
	c.leaveOut(name, err.Error())
}

// end is the error of a copy that is not complete.
func (c *copying) end() error {
	if c.failed > 0 {
		return fmt.Errorf("%s could not be copied", render.Plural(c.failed, "file"))
	}
	return nil
}

func (c *copying) fromWorkspace(ctx context.Context, source, target string) error {
	source = path.Clean(source)
	archive, err := client.OpenWorkspace(ctx, c.namespace, c.chat, source)
	if err == nil {
		defer func() { _ = archive.Close() }() // It was only read.
		reader := tar.NewReader(cancelable{ctx, archive})
		if target == "-" {
			err = c.print(reader)
		} else {
			err = c.extractAll(reader, placeFor(source, target))
		}
	}
	if err != nil {
		return fmt.Errorf("copying %s of chat %s: %w", source, c.chat, err)
	}
	return c.end()
}

// placeFor is where a copy of the source belongs: in the target, if that is a directory.
func placeFor(source, target string) string {
	info, err := os.Stat(target)
	if err == nil && info.IsDir() || strings.HasSuffix(filepath.ToSlash(target), "/") {
		return filepath.Join(target, path.Base(source))
	}
	return target
}

// cancelable reads until the context is done.
type cancelable struct {
	ctx  context.Context
	from io.Reader
}

// Read implements io.Reader.
func (r cancelable) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.from.Read(p)
}

// isSparse reports whether an entry stands for more bytes than the archive has: no agent sends such, and they would
// fill the disk.
func isSparse(header *tar.Header) bool {
	for key := range header.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return false
}

// print writes the file of the archive to standard output. The entry behind it says if it could not be read to its end.
func (c *copying) print(archive *tar.Reader) error {
	header, err := archive.Next()
	switch {
	case err != nil:
		return err
	case header.PAXRecords[client.ArchiveError] != "":
		return errors.New(header.PAXRecords[client.ArchiveError])
	case header.Typeflag != tar.TypeReg || isSparse(header):
		return usageError{errors.New("only a regular file can be written to standard output")}
	}
	if _, err := io.Copy(exactly(c.s.Out), archive); err != nil {
		return err
	}
	switch header, err = archive.Next(); {
	case err == nil && header.PAXRecords[client.ArchiveError] != "":
		return errors.New(header.PAXRecords[client.ArchiveError])
	case err != nil && !errors.Is(err, io.EOF):
		return fmt.Errorf("the copy is not complete: %w", err)
	}
	return nil
}

// extractAll makes the target a copy of the file or directory that the archive begins with.
func (c *copying) extractAll(archive *tar.Reader, target string) error {
	first, err := archive.Next()
	if err != nil {
		return err
	}
	isDir := first.Typeflag == tar.TypeDir
	dir, name := filepath.Dir(target), filepath.Base(target)
	if isDir {
		dir = target
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir) // No name of the archive leads out of it.
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // It is only a directory.
	for header := first; err == nil; header, err = archive.Next() {
		if isDir {
			name = path.Clean(header.Name)
		}
		c.extract(root, name, header, archive)
	}
	if !errors.Is(err, io.EOF) {
		c.discard(root)
		return fmt.Errorf("the copy is not complete: %w", err)
	}
	c.complete(root)
	return nil
}

// complete names the last file.
func (c *copying) complete(root *os.Root) {
	if c.last.name == "" {
		return
	}
	if err := root.Rename(c.last.temporary, c.last.name); err != nil {
		c.fail(c.last.name, err)
		_ = root.Remove(c.last.temporary) // There is an error already.
	}
	c.last = pending{}
}

// discard removes the last file. One that had its name stays.
func (c *copying) discard(root *os.Root) {
	if c.last.name != "" {
		_ = root.Remove(c.last.temporary) // There is an error already.
	}
	c.last = pending{}
}

// extract writes one entry of an archive.
func (c *copying) extract(root *os.Root, to string, header *tar.Header, content io.Reader) {
	why := header.PAXRecords[client.ArchiveError]
	if why != "" && c.last.name == to { // The agent has read a part of it, and sent zeros for the others.
		c.discard(root)
	}
	c.complete(root)
	var err error
	switch {
	case why != "":
		err = errors.New(why)
	case isSparse(header):
		err = errors.New("it is a sparse file")
	case header.Typeflag == tar.TypeDir:
		err = root.MkdirAll(to, 0o777)
	case header.Typeflag == tar.TypeReg:
		c.last, err = writeFile(root, to, fs.FileMode(header.Mode)&0o111|0o666, content)
	default:
		c.leaveOut(to, "it is a link to "+header.Linkname)
	}
	if err != nil {
		c.fail(to, err)
	}
}

// writeFile writes the content for a name next to what has that name. It leaves nothing if the content breaks off.
func writeFile(root *os.Root, name string, mode fs.FileMode, content io.Reader) (pending, error) {
	temporary := path.Join(path.Dir(name), ".copy-"+rand.Text())
	file, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return pending{}, err
	}
	_, err = io.Copy(file, content)
	if err = errors.Join(err, file.Close()); err != nil {
		_ = root.Remove(temporary) // There is an error already.
		return pending{}, err
	}
	return pending{name: name, temporary: temporary}, nil
}

func (c *copying) toWorkspace(ctx context.Context, source, target string) error {
	source, err := filepath.Abs(source)
	if err == nil {
		last := path.Base("/" + target)
		if strings.HasSuffix(target, "/") || last == "." || last == ".." || last == "/" {
			target = path.Join(target, filepath.Base(source))
		}
		source, err = filepath.EvalSymlinks(source)
	}
	if err == nil {
		err = filepath.WalkDir(source, func(at string, entry fs.DirEntry, err error) error {
			return c.visit(ctx, source, at, target, entry, err)
		})
	}
	if err != nil {
		return fmt.Errorf("copying to chat %s: %w", c.chat, err)
	}
	return c.end()
}

// visit copies one entry of a tree. What concerns one file or directory does not stop the others.
func (c *copying) visit(ctx context.Context, source, at, target string, entry fs.DirEntry, err error) error {
	below, outside := filepath.Rel(source, at)
	switch {
	case err != nil:
		c.fail(at, err)
		return fs.SkipDir
	case outside != nil:
		return outside
	case entry.IsDir():
		if entries, err := os.ReadDir(at); err == nil && len(entries) == 0 {
			c.leaveOut(at, "it is an empty directory")
		}
		return nil
	case !entry.Type().IsRegular():
		c.leaveOut(at, "it is no regular file")
		return nil
	}
	return c.put(ctx, at, path.Join(target, filepath.ToSlash(below)))
}

// put copies one file.
func (c *copying) put(ctx context.Context, at, target string) error {
	info, err := os.Lstat(at)
	if err == nil && info.Size() > maxCopied {
		err = fmt.Errorf("it has %d bytes, and a workspace takes files of at most 16 MiB", info.Size())
	}
	var content []byte
	if err == nil {
		content, err = os.ReadFile(at)
	}
	if err != nil {
		c.fail(at, err)
		return nil
	}
	err = client.PutWorkspaceFile(ctx, c.namespace, c.chat, target, content, info.Mode()&0o111 != 0)
	refused, ok := errors.AsType[*client.Error](err)
	if ok && (refused.Status == http.StatusBadRequest || refused.Status == http.StatusRequestEntityTooLarge) {
		c.fail(at, err)
		return nil
	}
	return err
}
