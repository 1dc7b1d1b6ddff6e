import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.zookeeper.AsyncCallback;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;

/**
 * The plain Java client as a peer of the bench: `ClientBench CONNECT PATH OPERATION WINDOW COUNT WARM_UP BYTES`.
 * OPERATION is creates, gets, sets or deletes; WINDOW requests are on their way at any time, and 1 means its blocking
 * calls. PATH is there; its children named by a number are made, and used, by this program: gets, sets and deletes need
 * a run of creates of COUNT + WARM_UP before. Prints one line:
 *
 *   OPERATION WINDOW OPERATIONS_PER_SECOND CLIENT_CPU_MICROSECONDS_PER_OPERATION [P50_MICROSECONDS P99_MICROSECONDS]
 *
 * Percentiles are of blocking calls. The first WARM_UP operations are not counted.
 */
public final class ClientBench {
  private static final OperatingSystemMXBean system =
      ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class);

  private final ZooKeeper client;
  private final String path;
  private final String operation;
  private final byte[] data;

  private ClientBench(ZooKeeper client, String path, String operation, byte[] data) {
    this.client = client;
    this.path = path;
    this.operation = operation;
    this.data = data;
  }

  public static void main(String[] arguments) throws Exception {
    CountDownLatch connected = new CountDownLatch(1);
    ZooKeeper client =
        new ZooKeeper(
            arguments[0],
            30_000,
            (event) -> {
              if (event.getState() == Watcher.Event.KeeperState.SyncConnected) connected.countDown();
            });
    connected.await();
    byte[] data = new byte[Integer.parseInt(arguments[6])];
    Arrays.fill(data, (byte) 'x');
    int window = Integer.parseInt(arguments[3]);
    int count = Integer.parseInt(arguments[4]);
    int warmUp = Integer.parseInt(arguments[5]);
    ClientBench bench = new ClientBench(client, arguments[1], arguments[2], data);
    if (window == 1) bench.blocking(warmUp, count);
    else bench.windowed(window, warmUp, count);
    client.close();
  }

  private String child(int number) {
    return path + "/" + number;
  }

  private void blocking(int warmUp, int count) throws Exception {
    for (int number = 0; number < warmUp; number++) call(number);
    long[] took = new long[count];
    long cpu = system.getProcessCpuTime();
    long began = System.nanoTime();
    for (int index = 0; index < count; index++) {
      long sent = System.nanoTime();
      call(warmUp + index);
      took[index] = System.nanoTime() - sent;
    }
    long ended = System.nanoTime();
    cpu = system.getProcessCpuTime() - cpu;
    Arrays.sort(took);
    String percentiles =
        String.format(Locale.ROOT, " %.1f %.1f", took[count / 2] / 1e3, took[(int) (count * 0.99)] / 1e3);
    print(1, count, ended - began, cpu, percentiles);
  }

  private void call(int number) throws Exception {
    switch (operation) {
      case "creates":
        client.create(child(number), data, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        return;
      case "gets":
        client.getData(child(number), false, null);
        return;
      case "sets":
        client.setData(child(number), data, -1);
        return;
      case "deletes":
        client.delete(child(number), -1);
        return;
      default:
        throw new IllegalArgumentException("there is no operation " + operation);
    }
  }

  private void windowed(int window, int warmUp, int count) throws Exception {
    flood(window, 0, warmUp);
    long cpu = system.getProcessCpuTime();
    long began = System.nanoTime();
    flood(window, warmUp, count);
    long ended = System.nanoTime();
    print(window, count, ended - began, system.getProcessCpuTime() - cpu, "");
  }

  private void flood(int window, int first, int count) throws Exception {
    Semaphore free = new Semaphore(window);
    AtomicInteger broken = new AtomicInteger();
    for (int number = first; number < first + count; number++) {
      free.acquire();
      send(
          number,
          (result) -> {
            if (result != KeeperException.Code.OK.intValue()) broken.set(result);
            free.release();
          });
    }
    free.acquire(window);
    if (broken.get() != 0) throw KeeperException.create(KeeperException.Code.get(broken.get()));
  }

  private interface Done {
    void done(int result);
  }

  private void send(int number, Done done) {
    switch (operation) {
      case "creates":
        AsyncCallback.StringCallback created = (result, any, context, name) -> done.done(result);
        client.create(child(number), data, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT, created, null);
        return;
      case "gets":
        AsyncCallback.DataCallback got = (result, any, context, bytes, stat) -> done.done(result);
        client.getData(child(number), false, got, null);
        return;
      case "sets":
        client.setData(child(number), data, -1, (result, any, context, stat) -> done.done(result), null);
        return;
      case "deletes":
        client.delete(child(number), -1, (result, any, context) -> done.done(result), null);
        return;
      default:
        throw new IllegalArgumentException("there is no operation " + operation);
    }
  }

  private void print(int window, int count, long nanoseconds, long cpu, String more) {
    double perSecond = count / (nanoseconds / 1e9);
    System.out.println(
        String.format(Locale.ROOT, "%s %d %.0f %.2f", operation, window, perSecond, cpu / 1e3 / count) + more);
  }
}
