import java.io.BufferedOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.queue.DistributedDelayQueue;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * Java Curator's delay queue as a peer of the bench: `Consumer CONNECT PATH LOCK_PATH THREADS`. Items are texts `NUMBER DUE`. Prints
 * `started`, and when the consumer of an item starts, a line `NUMBER DUE WALL_MS MONOTONIC_MS`. Lines are printed in batches, so that
 * printing delays no item. Ends when its input ends.
 */
public final class Consumer {
  private static final StringBuilder notes = new StringBuilder();

  public static void main(String[] arguments) throws Exception {
    PrintStream out = new PrintStream(new BufferedOutputStream(System.out, 1 << 16), false, StandardCharsets.UTF_8);
    CuratorFramework client =
        CuratorFrameworkFactory.newClient(arguments[0], 30_000, 15_000, new ExponentialBackoffRetry(100, 5));
    client.start();
    client.blockUntilConnected();
    QueueConsumer<String> consumer =
        new QueueConsumer<String>() {
          @Override
          public void consumeMessage(String item) {
            String line = item + ' ' + System.currentTimeMillis() + ' ' + System.nanoTime() / 1e6 + '\n';
            synchronized (notes) {
              notes.append(line);
            }
          }

          @Override
          public void stateChanged(CuratorFramework any, ConnectionState state) {
            System.err.println(state);
          }
        };
    DistributedDelayQueue<String> queue =
        QueueBuilder.builder(client, consumer, new Text(), arguments[1])
            .lockPath(arguments[2])
            .executor(Executors.newFixedThreadPool(Integer.parseInt(arguments[3])))
            .buildDelayQueue();
    queue.start();
    out.println("started");
    out.flush();
    ScheduledExecutorService writer = Executors.newSingleThreadScheduledExecutor();
    writer.scheduleWithFixedDelay(() -> write(out), 150, 150, TimeUnit.MILLISECONDS);
    while (System.in.read() >= 0) {
      // the input's bytes are ignored; only its end matters
    }
    write(out);
    System.exit(0);
  }

  private static void write(PrintStream out) {
    String batch;
    synchronized (notes) {
      batch = notes.toString();
      notes.setLength(0);
    }
    out.print(batch);
    out.flush();
  }

  private static final class Text implements QueueSerializer<String> {
    @Override
    public byte[] serialize(String item) {
      return item.getBytes(StandardCharsets.UTF_8);
    }

    @Override
    public String deserialize(byte[] bytes) {
      return new String(bytes, StandardCharsets.UTF_8);
    }
  }
}
