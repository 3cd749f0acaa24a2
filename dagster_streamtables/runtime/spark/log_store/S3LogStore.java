package streamtables;

import io.delta.storage.S3SingleDriverLogStore;
import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.Iterator;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Creates each commit of a Delta table on S3 by a conditional put, so that none overwrites another.
 *
 * <p>Delta's own store looks whether the file exists, and then puts it: of two writers, the slower
 * one erases what the other one committed in between. Here the store itself decides, as it does for
 * delta-rs, between writers of any kind. Only what Delta itself overwrites is put without a
 * condition.
 *
 * <p>S3A sends a request again whose answer is lost, and then meets the object that it made itself,
 * which looks like a conflict. So each object has a random id among its metadata, by which its
 * writer recognizes it.
 */
public class S3LogStore extends S3SingleDriverLogStore {
  private static final String CONDITION = "fs.option.create.conditional.overwrite";
  private static final String ID = "streamtables-write";
  private static final int ATTEMPTS = 10;
  private static final long PAUSE_MILLIS = 20;

  /**
   * 409: another conditional request for the key was running, and the outcome of neither says
   * anything about this one. 412: the object existed. S3A tells 412 by an exception of its own.
   */
  private static final Pattern CONFLICT =
      Pattern.compile("Status Code: (409|412)|RemoteFileChangedException");

  private static final Set<String> CONDITIONAL = ConcurrentHashMap.newKeySet();

  public S3LogStore(Configuration conf) {
    super(conf);
  }

  /**
   * Writes a file of the log.
   *
   * @throws FileAlreadyExistsException there is one already, of another writer; Delta then tries
   *     the next version
   */
  @Override
  public void write(Path path, Iterator<String> actions, Boolean overwrite, Configuration conf)
      throws IOException {
    if (overwrite) {
      super.write(path, actions, true, conf);
      return;
    }
    FileSystem files = path.getFileSystem(conf);
    Path file = files.makeQualified(path);
    requireConditions(files, file.getParent());
    // All at once: a stream that is closed after an error in the middle would publish a part.
    create(files, file, bytes(actions));
  }

  private static byte[] bytes(Iterator<String> actions) {
    ByteArrayOutputStream lines = new ByteArrayOutputStream();
    while (actions.hasNext()) {
      lines.writeBytes((actions.next() + "\n").getBytes(StandardCharsets.UTF_8));
    }
    return lines.toByteArray();
  }

  private static void create(FileSystem files, Path path, byte[] content) throws IOException {
    String id = UUID.randomUUID().toString();
    for (int attempt = 1; ; attempt++) {
      try {
        put(files, path, content, id);
        return;
      } catch (IOException error) {
        if (isInterrupt(error)) {
          throw error;
        }
        String found = writerOf(files, path, error);
        if (id.equals(found)) {
          return;
        }
        if (found != null) {
          FileAlreadyExistsException taken = new FileAlreadyExistsException(path.toString());
          taken.initCause(error);
          throw taken;
        }
        if (attempt == ATTEMPTS || !CONFLICT.matcher(trace(error)).find()) {
          throw error;
        }
        pause(attempt);
      }
    }
  }

  /** A timeout is none, though Java makes it a kind of one: the object may have been made. */
  private static boolean isInterrupt(IOException error) {
    return error instanceof InterruptedIOException && !(error instanceof SocketTimeoutException);
  }

  private static void put(FileSystem files, Path path, byte[] content, String id)
      throws IOException {
    FSDataOutputStream out;
    try {
      FSDataOutputStreamBuilder<?, ?> builder = files.createFile(path);
      builder.overwrite(false);
      builder.must(CONDITION, true);
      builder.opt("fs.s3a.create.header." + ID, id);
      out = builder.build();
    } catch (IllegalArgumentException | UnsupportedOperationException error) {
      throw unsafe(files, files.getClass().getName() + " makes no conditional put", error);
    }
    boolean whole = false;
    try {
      out.write(content);
      whole = true;
    } finally {
      if (!whole) {
        out.abort();
      }
    }
    out.close();
  }

  /** The id of an object's writer: empty if it gave none, null if there is no object. */
  private static String writerOf(FileSystem files, Path path, IOException error)
      throws IOException {
    try {
      byte[] id = files.getXAttr(path, "header." + ID);
      return id == null ? "" : new String(id, StandardCharsets.UTF_8);
    } catch (FileNotFoundException missing) {
      return null;
    } catch (IOException unknown) {
      if (isInterrupt(unknown)) {
        unknown.addSuppressed(error);
        throw unknown;
      }
      error.addSuppressed(unknown);
      throw error;
    }
  }

  /**
   * Checks, once for each bucket, that a put fails where an object exists, and that an object keeps
   * its id. A store that knows no condition ignores it and answers that all went well.
   */
  private static void requireConditions(FileSystem files, Path folder) throws IOException {
    String bucket = files.getUri().toString();
    if (CONDITIONAL.contains(bucket)) {
      return;
    }
    Path probe = new Path(folder, "_streamtables_probe_" + UUID.randomUUID());
    create(files, probe, new byte[] {'1'});
    try {
      if ("".equals(writerOf(files, probe, new IOException("the probe cannot be read")))) {
        throw unsafe(files, "it keeps no metadata of an object", null);
      }
      create(files, probe, new byte[] {'2'});
      throw unsafe(files, "it ignores If-None-Match", null);
    } catch (FileAlreadyExistsException asItShould) {
      CONDITIONAL.add(bucket);
    } finally {
      discard(files, probe);
    }
  }

  private static void discard(FileSystem files, Path probe) {
    try {
      files.delete(probe, false);
    } catch (IOException left) {
      // Nobody reads it.
    }
  }

  private static IOException unsafe(FileSystem files, String why, Throwable cause) {
    return new IOException(
        "streamtables.S3LogStore: " + files.getUri() + " lets a commit overwrite another: " + why,
        cause);
  }

  private static String trace(Throwable error) {
    StringBuilder said = new StringBuilder();
    for (Throwable each = error; each != null; each = each.getCause()) {
      said.append(each).append('\n');
    }
    return said.toString();
  }

  private static void pause(int attempt) throws InterruptedIOException {
    try {
      Thread.sleep(PAUSE_MILLIS << attempt);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw new InterruptedIOException(interrupted.getMessage());
    }
  }
}
