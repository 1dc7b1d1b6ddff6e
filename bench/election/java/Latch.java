import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
import org.apache.curator.framework.recipes.leader.Participant;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * A candidate: Java Curator's leader latch, `Latch CONNECT PATH ID SESSION_TIMEOUT_MS`. Words on standard input: join,
 * leave, watch, belief; lines on standard output: `WHAT NANOSECONDS`, by the machine's monotonic clock. Ends with its
 * input.
 */
public final class Latch {
  private static volatile LeaderLatch latch;
  private static volatile long believed;

  public static void main(String[] arguments) throws Exception {
    CuratorFramework client =
        CuratorFrameworkFactory.newClient(
            arguments[0], Integer.parseInt(arguments[3]), 15_000, new ExponentialBackoffRetry(50, 10, 1_000));
    client.start();
    client.blockUntilConnected();
    tell("ready", System.nanoTime());
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String word = input.readLine(); word != null; word = input.readLine()) {
      switch (word) {
        case "join":
          join(client, arguments[1], arguments[2]);
          break;
        case "leave":
          tell("leaving", System.nanoTime());
          latch.close();
          tell("left", System.nanoTime());
          break;
        case "watch":
          watch();
          break;
        case "belief":
          tell("belief", believed);
          break;
        default:
          throw new IllegalArgumentException(word);
      }
    }
    Runtime.getRuntime().halt(0);
  }

  private static void join(CuratorFramework client, String path, String id) throws Exception {
    latch = new LeaderLatch(client, path, id);
    latch.addListener(
        new LeaderLatchListener() {
          @Override
          public void isLeader() {
            tell("leads", System.nanoTime());
          }

          @Override
          public void notLeader() {
            // nothing: the command `belief` reports until when this candidate believed that it led
          }
        });
    latch.start();
    while (!isIn(id)) Thread.sleep(5);
    tell("joined", System.nanoTime());
  }

  private static boolean isIn(String id) throws Exception {
    for (Participant participant : latch.getParticipants()) if (participant.getId().equals(id)) return true;
    return false;
  }

  private static void watch() {
    Thread thread =
        new Thread(
            () -> {
              while (true) {
                long at = System.nanoTime();
                if (latch.hasLeadership()) believed = at;
                try {
                  Thread.sleep(1);
                } catch (InterruptedException interruption) {
                  return;
                }
              }
            });
    thread.setDaemon(true);
    thread.start();
  }

  private static synchronized void tell(String what, long at) {
    System.out.println(what + ' ' + at);
  }
}
